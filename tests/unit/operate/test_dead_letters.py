"""What may be said about which dead letters are meant."""

from __future__ import annotations

import pytest

from interlock import Interlock
from interlock.errors import InvalidOption


@pytest.mark.parametrize("verb", ["arequeue_all", "aacknowledge_all"])
@pytest.mark.parametrize("misspelt", ["trian", "ids", "state"])
async def test_a_filter_that_does_not_exist_is_refused_instead_of_meaning_all(verb, misspelt):
    with pytest.raises(InvalidOption, match=misspelt):
        await getattr(Interlock().dead_letters, verb)(**{misspelt: "x"})
