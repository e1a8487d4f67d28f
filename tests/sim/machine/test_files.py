"""Files that are whole or not there."""

from ottla.sim.machine.files import write_whole


def test_what_was_there_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("before")
    write_whole(path, b"after")
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_behind_a_link_its_file_is_replaced(tmp_path):
    path, link = tmp_path / "page.md", tmp_path / "link"
    path.write_text("before")
    link.symlink_to(path)
    write_whole(link, b"after")
    assert link.is_symlink()
    assert path.read_text() == "after"
