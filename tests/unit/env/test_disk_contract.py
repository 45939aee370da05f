"""The contract of env/disk.py, checked on the real and on the simulated disk."""

import asyncio
import errno

import pytest

from ottla.env import Disk, OpenMode
from ottla.errors import DirectoryInUse

Place = tuple[Disk, str]


def test_append_returns_positions_and_joins_parts(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    assert file.append(b"one") == 0
    assert file.append(b"two", bytearray(b"three"), memoryview(b"four")) == 3
    assert file.append() == 15
    assert file.append(b"") == 15
    assert file.size == 15
    assert file.read(0, 100) == b"onetwothreefour"
    assert file.path == f"{root}/a"


def test_append_of_more_parts_than_one_system_call_takes(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    parts = [bytes([number % 251]) * (number % 7) for number in range(3000)]
    file.append(*parts)
    assert file.read(0, 1 << 20) == b"".join(parts)
    assert file.size == sum(map(len, parts))


def test_reads_come_back_short_only_at_the_end(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    file.append(b"0123456789")
    assert file.read(3, 4) == b"3456"
    assert file.read(8, 4) == b"89"
    assert file.read(10, 4) == b""
    assert file.read(99, 4) == b""


def test_write_at_overwrites_extends_and_fills_gaps_with_zeros(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    file.append(b"0123")
    file.write_at(2, b"ab")
    assert file.size == 4
    file.write_at(3, b"XYZ")
    assert file.size == 6
    file.write_at(8, b"!")
    assert file.size == 9
    assert file.read(0, 20) == b"01aXYZ\0\0!"
    assert file.append(b"end") == 9


def test_truncate(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    file.append(b"0123456789")
    file.truncate(4)
    assert (file.size, file.read(0, 20)) == (4, b"0123")
    assert file.append(b"x") == 4
    with pytest.raises(ValueError, match="has 5"):
        file.truncate(6)


def test_open_modes(place: Place) -> None:
    disk, root = place
    for mode in (OpenMode.READ, OpenMode.WRITE):
        with pytest.raises(FileNotFoundError):
            disk.open(f"{root}/missing", mode)
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/no/folder", OpenMode.CREATE)
    with pytest.raises(IsADirectoryError):
        disk.open(root, OpenMode.READ)
    disk.open(f"{root}/a", OpenMode.CREATE).append(b"kept")
    assert disk.open(f"{root}/a", OpenMode.CREATE).size == 4
    reader = disk.open(f"{root}/a", OpenMode.READ)
    with pytest.raises(OSError, match=r".") as caught:
        reader.append(b"no")
    assert caught.value.errno == errno.EBADF
    with pytest.raises(OSError, match=r".") as caught:
        reader.write_at(0, b"no")
    assert caught.value.errno == errno.EBADF
    assert reader.read(0, 10) == b"kept"


def test_closed_handles_refuse_and_ranges_live_on(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    file.append(b"0123456789")
    piece = file.range(2, 5)
    file.close()
    file.close()
    for call in (lambda: file.read(0, 1), lambda: file.append(b"x"), lambda: file.range(0, 1), lambda: file.write_at(0, b"x")):
        with pytest.raises(OSError, match="closed") as caught:
            call()
        assert caught.value.errno == errno.EBADF
    with pytest.raises(OSError, match="closed"):
        asyncio.run(file.sync())
    asyncio.run(disk.remove(f"{root}/a"))
    assert not disk.exists(f"{root}/a")
    assert (piece.position, piece.length, len(piece)) == (2, 5, 5)
    assert piece.read() == b"23456"


def test_handles_and_ranges_survive_rename(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    file.append(b"0123")
    piece = file.range(0, 4)
    asyncio.run(disk.rename(f"{root}/a", f"{root}/b"))
    file.append(b"45")
    assert piece.read() == b"0123"
    assert disk.read_file(f"{root}/b") == b"012345"
    assert file.path == f"{root}/a"


def test_a_folder_is_renamed_at_once_under_open_files(place: Place) -> None:
    disk, root = place
    disk.make_directory(f"{root}/old")
    file = disk.open(f"{root}/old/a", OpenMode.CREATE)
    file.append(b"0123")
    disk.rename_now(f"{root}/old", f"{root}/new")
    file.append(b"45")
    assert disk.list_directory(root) == ["new"]
    assert disk.read_file(f"{root}/new/a") == b"012345"
    with pytest.raises(FileNotFoundError):
        disk.rename_now(f"{root}/old", f"{root}/new")


def test_paths_from_the_root(place: Place) -> None:
    disk, root = place
    assert disk.absolute(f"{root}/a") == f"{root}/a"
    assert disk.absolute(f"{root}/./a/../b/") == f"{root}/b"
    relative = disk.absolute("a/b")
    assert relative.startswith("/")
    assert relative.endswith("/a/b")


def test_space_of_a_folder(place: Place) -> None:
    disk, root = place
    space = asyncio.run(disk.space(root))
    assert 0 < space.usable_bytes <= space.total_bytes
    with pytest.raises(FileNotFoundError):
        asyncio.run(disk.space(f"{root}/missing"))


def test_a_range_of_a_file_cut_short_raises(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    file.append(b"0123456789")
    piece = file.range(2, 5)
    file.truncate(6)
    with pytest.raises(OSError, match="shorter"):
        piece.read()


def test_sync_then_read_back(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    file.append(b"data")
    asyncio.run(file.sync())
    asyncio.run(disk.sync_directory(root))
    assert disk.read_file(f"{root}/a") == b"data"


def test_folders(place: Place) -> None:
    disk, root = place
    disk.make_directory(f"{root}/x/y/z")
    disk.make_directory(f"{root}/x/y/z")
    disk.open(f"{root}/x/y/b", OpenMode.CREATE)
    disk.open(f"{root}/x/y/a", OpenMode.CREATE)
    assert disk.list_directory(f"{root}/x/y") == ["a", "b", "z"]
    assert disk.is_directory(f"{root}/x/y/z")
    assert not disk.is_directory(f"{root}/x/y/a")
    assert not disk.is_directory(f"{root}/nothing")
    assert disk.exists(f"{root}/x/y/a")
    with pytest.raises(FileNotFoundError):
        disk.list_directory(f"{root}/nothing")
    with pytest.raises(NotADirectoryError):
        disk.list_directory(f"{root}/x/y/a")
    with pytest.raises(FileExistsError):
        disk.make_directory(f"{root}/x/y/a")
    asyncio.run(disk.rename(f"{root}/x/y", f"{root}/x/w"))
    assert disk.list_directory(f"{root}/x") == ["w"]
    asyncio.run(disk.remove_directory(f"{root}/x"))
    asyncio.run(disk.remove_directory(f"{root}/x"))
    assert disk.list_directory(root) == []


def test_rename_replaces_and_refuses_what_is_not_there(place: Place) -> None:
    disk, root = place
    disk.open(f"{root}/a", OpenMode.CREATE).append(b"new")
    disk.open(f"{root}/b", OpenMode.CREATE).append(b"old")
    asyncio.run(disk.rename(f"{root}/a", f"{root}/b"))
    assert disk.list_directory(root) == ["b"]
    assert disk.read_file(f"{root}/b") == b"new"
    with pytest.raises(FileNotFoundError):
        asyncio.run(disk.rename(f"{root}/a", f"{root}/b"))
    disk.make_directory(f"{root}/full/inner")
    disk.make_directory(f"{root}/other")
    with pytest.raises(OSError, match="not empty"):
        asyncio.run(disk.rename(f"{root}/other", f"{root}/full"))


def test_many_files_are_replaced_together(place: Place) -> None:
    disk, root = place
    for folder in ("one", "two"):
        disk.make_directory(f"{root}/{folder}")
    for round in (b"first", b"second"):
        files = {f"{root}/{folder}/{name}": round + name.encode() for folder in ("one", "two") for name in ("x", "y")}
        asyncio.run(disk.replace_files(files))
        assert {path: disk.read_file(path) for path in files} == files
    assert disk.list_directory(f"{root}/one") == ["x", "y"], "no drafts are left"
    asyncio.run(disk.replace_files({}))
    with pytest.raises(FileNotFoundError):
        asyncio.run(disk.replace_files({f"{root}/none/x": b""}))


def test_a_folder_is_not_read_as_a_file(place: Place) -> None:
    disk, root = place
    disk.make_directory(f"{root}/folder")
    with pytest.raises(IsADirectoryError, match="folder"):
        disk.read_file(f"{root}/folder")


def test_replace_file_and_remove(place: Place) -> None:
    disk, root = place
    for data in (b"first", bytearray(b"second, longer"), memoryview(b"3")):
        asyncio.run(disk.replace_file(f"{root}/state", data))
        assert disk.read_file(f"{root}/state") == bytes(data)
    assert disk.list_directory(root) == ["state"]
    asyncio.run(disk.remove(f"{root}/state"))
    asyncio.run(disk.remove(f"{root}/state"))
    assert disk.list_directory(root) == []
    with pytest.raises(FileNotFoundError):
        disk.read_file(f"{root}/state")


def test_modification_time(place: Place) -> None:
    disk, root = place
    disk.open(f"{root}/a", OpenMode.CREATE).append(b"x")
    assert disk.modified_ms(f"{root}/a") > 1_600_000_000_000
    disk.set_modified_ms(f"{root}/a", 1_234_567_890_123)
    assert disk.modified_ms(f"{root}/a") == 1_234_567_890_123
    with pytest.raises(FileNotFoundError):
        disk.modified_ms(f"{root}/b")


def test_a_directory_is_locked_once(place: Place) -> None:
    disk, root = place
    lock = disk.lock_directory(root)
    with pytest.raises(DirectoryInUse, match=r"log\.dirs"):
        disk.lock_directory(root)
    lock.release()
    lock.release()
    again = disk.lock_directory(root)
    again.release()
    assert disk.list_directory(root) == [".lock"]


def test_a_range_is_warmed_and_then_in_memory(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", OpenMode.CREATE)
    file.append(bytes(3_000_000))
    records = file.range(1000, 2_500_000)
    asyncio.run(disk.warm(records))
    assert records.is_resident()
    assert len(records.read()) == 2_500_000
    empty = file.range(10, 0)
    asyncio.run(disk.warm(empty))
    assert empty.is_resident()


def test_file_opened_later_works_as_any_other(place: Place) -> None:
    disk, root = place
    disk.open(f"{root}/a", OpenMode.CREATE).append(b"0123")
    for use in ("append", "read", "range", "truncate", "write"):
        file = disk.open_later(f"{root}/a", 4)
        assert (file.size, file.path) == (4, f"{root}/a")
        match use:
            case "append":
                assert file.append(b"4") == 4
                file.truncate(4)
            case "read":
                assert file.read(1, 2) == b"12"
            case "range":
                assert file.range(2, 2).read() == b"23"
            case "truncate":
                file.truncate(2)
                file.append(b"23")
            case "write":
                file.write_at(0, b"0")
        asyncio.run(file.sync())
        assert disk.read_file(f"{root}/a") == b"0123"
        file.close()
        with pytest.raises(OSError, match="closed"):
            file.range(0, 1)


def test_file_opened_later_follows_its_name(place: Place) -> None:
    disk, root = place
    disk.open(f"{root}/a", OpenMode.CREATE).append(b"0123")
    file = disk.open_later(f"{root}/a", 4)
    asyncio.run(disk.rename(f"{root}/a", f"{root}/b"))
    file.follow(f"{root}/b")
    assert file.read(0, 4) == b"0123"
    asyncio.run(disk.rename(f"{root}/b", f"{root}/c"))
    assert file.read(0, 4) == b"0123"


def test_list_files_has_sizes(place: Place) -> None:
    disk, root = place
    disk.open(f"{root}/b", OpenMode.CREATE).append(b"0123")
    disk.open(f"{root}/a", OpenMode.CREATE)
    disk.make_directory(f"{root}/c")
    assert list(disk.list_files(root).items()) == [("a", 0), ("b", 4), ("c", -1)]
    with pytest.raises(FileNotFoundError):
        disk.list_files(f"{root}/none")


def test_sync_all_syncs_files_and_folders(place: Place) -> None:
    disk, root = place
    files = [disk.open(f"{root}/{name}", OpenMode.CREATE) for name in "ab"]
    for file in files:
        file.append(b"x")
    asyncio.run(disk.sync_all(files, [root]))
    asyncio.run(disk.sync_all([], []))
    with pytest.raises(FileNotFoundError):
        asyncio.run(disk.sync_all([], [f"{root}/none"]))
