# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Curves of time over size, by matplotlib."""

from .resident import PeerError


def pyplot():
    """Raises PeerError without matplotlib, before anything is measured."""
    try:
        import matplotlib
    except ImportError as error:
        raise PeerError("--picture needs matplotlib: apt-get install python3-matplotlib, or pip install matplotlib") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot as found
    return found


def draw(rows, path):
    """One field for each collective, ranks, medium and distance; the format is the ending of path (svg, png, pdf)."""
    plot = pyplot()
    fields = {}
    for row in rows:
        fields.setdefault((row["collective"], row["ranks"], row["medium"], row["distance"]), []).append(row)
    columns = min(4, len(fields)) or 1
    figure, axes = plot.subplots(-(-len(fields) // columns) or 1, columns, squeeze=False,
                                 figsize=(5 * columns, 4 * (-(-len(fields) // columns) or 1)))
    for (collective, ranks, medium, distance), axis in zip(sorted(fields), axes.flat):
        curves = {}
        for row in sorted(fields[(collective, ranks, medium, distance)], key=lambda one: one["size_bytes"]):
            curves.setdefault("tutti", []).append((row["size_bytes"], row["tutti_us"]))
            for one in [row, *row["others"]]:
                curves.setdefault(one["peer"], []).append((row["size_bytes"], one["peer_us"]))
        for name, curve in curves.items():
            axis.plot(*zip(*curve), label=name, linewidth=2.5 if name == "tutti" else 1, marker=".")
        axis.set(title=f"{collective}, {ranks} ranks, {medium}, {distance}", xlabel="bytes", ylabel="us", xscale="log", yscale="log")
        axis.legend(fontsize="small")
    for axis in list(axes.flat)[len(fields):]:
        axis.set_visible(False)
    figure.tight_layout()
    figure.savefig(path)
