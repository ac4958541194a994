"""A host on an AXI4-Lite port, for Amaranth's simulator: one access at a time."""

__all__ = ["read_word", "write_word"]


async def write_word(ctx, axi, offset, value, *, strobes=0xF, before_tick=lambda: None):
    """Write a word; return the response. ``before_tick`` is called before each try."""
    ctx.set(axi.awaddr, offset)
    ctx.set(axi.wdata, value)
    ctx.set(axi.wstrb, strobes)
    ctx.set(axi.awvalid, 1)
    ctx.set(axi.wvalid, 1)
    ctx.set(axi.bready, 1)
    ready = 0
    while not ready:
        before_tick()
        *_, ready = await ctx.tick().sample(axi.awready & axi.wready)
    ctx.set(axi.awvalid, 0)
    ctx.set(axi.wvalid, 0)
    valid = 0
    while not valid:
        *_, valid, response = await ctx.tick().sample(axi.bvalid, axi.bresp)
    return response


async def read_word(ctx, axi, offset):
    """Read a word; return it and the response."""
    ctx.set(axi.araddr, offset)
    ctx.set(axi.arvalid, 1)
    ctx.set(axi.rready, 1)
    ready = 0
    while not ready:
        *_, ready = await ctx.tick().sample(axi.arready)
    ctx.set(axi.arvalid, 0)
    valid = 0
    while not valid:
        *_, valid, value, response = await ctx.tick().sample(axi.rvalid, axi.rdata, axi.rresp)
    return value, response
