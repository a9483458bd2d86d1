"""Where the published data sets are, under which terms, and what their files must be.

A checksum stands here only where it is known; elsewhere the one got is recorded
beside the data (trust on first use).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from d2cp.config.strict import unknown_name


@dataclass(frozen=True, kw_only=True)
class File:
    name: str
    url: str
    size: int | None = None  # bytes
    sha256: str = ""
    unpack: bool = False


@dataclass(frozen=True, kw_only=True)
class Published:
    name: str
    title: str
    licence: str
    files: tuple[File, ...]

    @property
    def size(self) -> int | None:
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


def _drive(identity: str) -> str:
    return f"https://drive.usercontent.google.com/download?id={identity}&export=download&confirm=t"


CATALOGUE: Mapping[str, Published] = {
    made.name: made
    for made in (
        Published(
            name="waterbirds",
            title="Waterbirds (Sagawa et al. 2020): birds of CUB-200-2011 on scenes of Places",
            licence="The authors' code is under the MIT licence. The photographs are those of "
            "CUB-200-2011 and Places, whose publishers give them for non-commercial research and "
            "education; no other right in them is granted.",
            files=(
                File(
                    name="waterbird_complete95_forest2water2.tar.gz",
                    url="https://nlp.stanford.edu/data/dro/"
                    "waterbird_complete95_forest2water2.tar.gz",
                    unpack=True,
                ),
            ),
        ),
        Published(
            name="celeba",
            title="CelebA (Liu et al. 2015), aligned and cropped faces with 40 attributes",
            licence="The CelebA agreement: for non-commercial research only; the images are not "
            "the publisher's property; no part may be sold, or passed on outside one's "
            "organisation. See https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
            files=(
                File(
                    name="list_attr_celeba.txt",
                    url=_drive("0B7EVK8r0v71pblRyaVFSWGxPY0U"),
                    size=26_721_026,
                    sha256="f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0",
                ),
                File(
                    name="list_eval_partition.txt",
                    url=_drive("0B7EVK8r0v71pY0NSMzRuSXJEVkk"),
                    size=2_836_386,
                    sha256="fc955bcb3ef8fbdf7d5640d9a8693a8431b5f2ee291a5c1449a1549e7e073fe7",
                ),
                File(
                    name="img_align_celeba.zip",
                    url=_drive("0B7EVK8r0v71pZjFTYXZWM3FlRnM"),
                    size=1_443_490_838,
                    sha256="46fb89443c578308acf364d7d379fe1b9efb793042c0af734b6112e4fd3a8c74",
                    unpack=True,
                ),
            ),
        ),
        Published(
            name="metashift",
            title="MetaShift (Liang and Zou 2022), cats and dogs indoors and outdoors, as "
            "SubpopBench packs them",
            licence="The authors' code is under the MIT licence, their annotations under CC BY "
            "4.0. The photographs are those of Visual Genome (CC BY 4.0), taken from Flickr and "
            "COCO: their owners' terms hold.",
            files=(
                File(
                    name="metashift.tar.gz",
                    url="https://www.dropbox.com/s/a7k65rlj4ownyr2/metashift.tar.gz?dl=1",
                    unpack=True,
                ),
            ),
        ),
    )
}


def published(name: str) -> Published:
    if name not in CATALOGUE:
        raise unknown_name(f"no data set {name!r} can be fetched", name, set(CATALOGUE))
    return CATALOGUE[name]
