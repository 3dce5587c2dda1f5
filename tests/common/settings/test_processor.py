"""The processor by what Linux says of it."""

import platform

import pytest

from entrostat.settings import processor


@pytest.fixture
def said(tmp_path, monkeypatch):
    """A function that sets what Linux says."""

    def say(text):
        path = tmp_path / "cpuinfo"
        path.write_text(text)
        monkeypatch.setattr(processor, "CPUINFO", path)

    return say


def test_an_x86_processor(said):
    core = "processor\t: 0\nmodel name\t: AMD EPYC 7763\nflags\t\t: fpu avx avx2 sse\n\n"
    said(core + core.replace("7763", "9999"))
    assert processor.processor() == "AMD EPYC 7763 (avx2)"
    assert processor.processor_name() == "AMD EPYC 7763"


def test_an_arm_processor_has_no_name(said):
    said("processor\t: 0\nFeatures\t: fp asimd bf16\n\n")
    assert processor.processor() == f"{platform.machine()} (asimd, bf16)"


def test_without_linux(tmp_path, monkeypatch):
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "none")
    assert processor.processor() == processor.processor_name() == platform.machine()
