"""CRC-32C, however it came to be loaded."""

import subprocess
import sys

import crc32c as front
import pytest

from ottla.log.checksum import crc32c

CHECK = 0xE3069283
"""Of the digits 1 to 9 (RFC 3720, as all catalogues of checksums give it)."""


def test_it_is_crc_32c():
    assert crc32c(b"123456789") == CHECK


def test_it_reads_any_buffer_in_place_and_goes_on_from_a_value():
    digits = memoryview(bytearray(b"123456789"))
    assert crc32c(digits[4:], crc32c(digits[:4])) == CHECK


@pytest.mark.parametrize("size", [0, 1, 61, 1_000, 70_000])
def test_it_agrees_with_the_front_of_its_package(size):
    data = bytes(each % 251 for each in range(size))
    assert crc32c(data) == front.crc32c(data)


@pytest.mark.parametrize(("first", "loaded"), [("", False), ("import crc32c;", True)])
def test_the_front_is_loaded_only_by_others(first, loaded):
    program = (
        f"import sys; {first} from ottla.log.checksum import crc32c; "
        "print(crc32c(b'123456789'), 'crc32c' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [str(CHECK), str(loaded)]
