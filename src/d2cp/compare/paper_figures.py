"""The figures of the paper's Table 1 (ERM: its ablation table), for reading beside ours.

They are the paper's own, on ViT-B/16 or copied by it from the rivals' papers on other backbones:
worst-group accuracy and its deviation, mean accuracy and its deviation, in percent.
"""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    worst_group: float
    worst_group_std: float | None = None
    mean: float | None = None
    mean_std: float | None = None


TABLE_1: dict[str, dict[str, Figure]] = {
    "cmnist": {
        "erm": Figure(9.42, 14.48),
        "group_dro": Figure(88.3, 4.5, 97.4, 1.3),
        "pde": Figure(90.73, 2.39, 98.16, 0.24),
        "cpt": Figure(91.3, 3.77, 97.85, 1.25),
        "crm": Figure(94.3, 0.9, 99.0, 0.0),
        "jtt": Figure(69.6, None, 99.6),
        "masktune": Figure(2.17, 3.77, 52.49, 2.02),
        "xrm": Figure(90.5, 2.1, 98.0, 0.5),
        "d2cp": Figure(91.99, 1.20, 96.39, 1.19),
    },
    "waterbirds": {
        "erm": Figure(74.97, 2.78),
        "group_dro": Figure(86.5, None, 90.2),
        "pde": Figure(90.3, 0.3, 92.4, 0.8),
        "cpt": Figure(93.5, 0.4, 96.3, 0.2),
        "elrep": Figure(90.4, 0.2, 91.6, 0.7),
        "crm": Figure(86.0, 0.6),
        "jtt": Figure(86.7, None, 93.3),
        "cnc": Figure(88.5, 0.3, 90.9, 0.1),
        "c_adapter": Figure(86.9, None, 96.2),
        "masktune": Figure(86.4, 1.9, 93.0, 0.7),
        "ula": Figure(86.1, 1.5, 91.5, 0.7),
        "gic": Figure(86.3, 0.1, 89.6, 1.3),
        "xrm": Figure(88.1, 0.9, 89.3),
        "sas": Figure(89.7, None, 96.3),
        "ppa": Figure(87.2, None, 94.6),
        "gerne": Figure(89.88, 0.67),
        "d2cp": Figure(90.81, 0.31, 93.06, 0.41),
    },
    "celeba": {
        "erm": Figure(67.41, 4.49),
        "group_dro": Figure(88.3, None, 93.1),
        "pde": Figure(91.0, 0.4, 92.0, 0.6),
        "cpt": Figure(92.0, 0.3, 93.2, 0.3),
        "elrep": Figure(91.4, 0.5, 92.4, 0.3),
        "crm": Figure(89.0, 0.6),
        "jtt": Figure(81.1, None, 88.0),
        "cnc": Figure(88.8, 0.9, 89.9, 0.5),
        "c_adapter": Figure(90.0, None, 90.7),
        "masktune": Figure(78.0, 1.2, 91.3, 0.1),
        "ula": Figure(86.5, 3.7, 93.9, 0.2),
        "gic": Figure(89.5, 0.0, 92.1, 0.1),
        "xrm": Figure(89.1, 1.3, 91.4),
        "sas": Figure(87.4, None, 91.1),
        "ppa": Figure(91.1, None, 92.1),
        "gerne": Figure(74.24, 2.51),
        "d2cp": Figure(91.80, 0.27, 92.34, 0.33),
    },
    "metashift": {
        "erm": Figure(71.65, 10.43),
        "group_dro": Figure(80.3),
        "pde": Figure(77.43, 0.89, 87.6, 3.07),
        "cpt": Figure(83.2, 1.46, 90.24, 0.17),
        "crm": Figure(74.7, 1.5),
        "jtt": Figure(69.6, None, 78.1),
        "masktune": Figure(72.31, 6.71, 87.68, 1.56),
        "xrm": Figure(77.5, 1.0),
        "d2cp": Figure(82.20, 1.13, 88.25, 1.08),
    },
}
