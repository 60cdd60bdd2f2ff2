"""The catalogue of a directory: its lists of providers, which are long, are encoded once and kept for a while."""

from pathlib import Path

from served import served

from turnkeeper.server.catalogue import ANSWERS_MAX, Catalogue
from turnkeeper.workspace.project import identify


async def test_lists_of_providers_are_kept_for_a_bounded_number_of_directories(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        catalogue, place = server.service.part(Catalogue), await identify(tmp_path)
        first = catalogue.every(place)
        assert catalogue.every(place) is first
        for number in range(ANSWERS_MAX):
            (tmp_path / str(number)).mkdir()
            catalogue.every(await identify(tmp_path / str(number)))
        again = catalogue.every(place)
        assert again is not first
        assert again == first
