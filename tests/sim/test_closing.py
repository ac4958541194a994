from sim.closing import Closing


class Held(Closing):
    closed = 0

    def close(self):
        self.closed += 1


def test_the_end_of_a_with_closes_whatever_happens():
    with Held() as held:
        assert held.closed == 0
    assert held.closed == 1
    try:
        with held:
            raise RuntimeError("it went wrong")
    except RuntimeError:
        assert held.closed == 2
