"""Gaussian discriminant analysis: scatter matrix of samples around the means of their classes."""

import sw.language as tw

__all__ = ["gda"]


@tw.kernel("X[M, N], y[M]: int32, mu[C, N] -> S[N, N]: fp32", sizes={"C": 16})
def gda(X, y, mu, S):
    """Gather the mean of each sample's class, and sum the outer products of the differences."""
    M, N = X.shape
    means, sigma = tw.load_tile(mu), tw.zeros(N, N)
    for i in tw.metapipe(M):
        x, label = tw.load_tile(X[i, :]), tw.load_tile(y[i])
        d = tw.buffer((x - tw.gather(means, label)).to(X.dtype))
        sigma += d.T @ d
    tw.store_tile(S, sigma)


@gda.reference
def _(X, y, mu):
    d = X - mu[y]
    return d.T @ d
