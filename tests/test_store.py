"""Maps in files: what is saved is what answers, and what was damaged says so."""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from tests.models import cases, random_model

import cfmaps
from cfmaps import CorruptMap, _container, _core, store

DATA = Path(__file__).parent / "data"


def answers(cfmap, rows, **options):
    many = cfmap.explain_many(rows, n_threads=1, **options)
    return many.points.tobytes(), many.distances.tolist(), many.statuses.tolist(), many.targets.tolist()


@pytest.fixture(scope="module")
def forest():
    X = np.random.default_rng(0).normal(size=(300, 4))
    return RandomForestClassifier(20, max_depth=5, random_state=0).fit(
        X, (X[:, 0] + X[:, 1] * X[:, 2] > 0) + (X[:, 3] > 1)
    )


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).normal(size=(12, 4))


@pytest.fixture(scope="module")
def saved(forest, tmp_path_factory):
    """A complete map in a file of a few hundred pages, and one that is half grown."""
    folder = tmp_path_factory.mktemp("maps")
    cfmap = cfmaps.CounterfactualMap(forest)
    cfmap.build(max_nodes=20_000)
    cfmap.save(folder / "half.cfmap")
    cfmap.build()
    cfmap.save(folder / "whole.cfmap")
    return folder


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases(), st.integers(0, 3))
def test_a_loaded_map_answers_as_the_saved_one(tmp_path_factory, case, grown):
    cfmap = cfmaps.CounterfactualMap(case.model, features=case.features)
    cfmap.build(max_nodes=[1, 9, 60, None][grown])
    path = tmp_path_factory.getbasetemp() / "case.cfmap"
    cfmap.save(path)
    loaded = cfmaps.load(path)
    assert answers(loaded, case.queries) == answers(cfmap, case.queries)
    assert loaded.features == case.features
    assert loaded.classes.tolist() == cfmap.classes.tolist()
    assert loaded.is_complete == cfmap.is_complete
    assert loaded.build().complete


def test_a_partial_map_grows_in_memory_to_what_the_whole_map_is(forest, saved, rows):
    before = (saved / "half.cfmap").read_bytes()
    half = cfmaps.load(saved / "half.cfmap")
    assert not half.is_complete
    assert half.partition.n_nodes > 10_000
    assert half.build(n_threads=2).complete
    whole = cfmaps.load(saved / "whole.cfmap")
    assert whole.is_complete
    assert half.partition.n_nodes == whole.partition.n_nodes
    assert answers(half, rows) == answers(whole, rows) == answers(cfmaps.CounterfactualMap(forest), rows)
    assert (saved / "half.cfmap").read_bytes() == before


def test_boxes_and_explanations_of_a_loaded_map_may_be_saved_again(saved, rows, tmp_path):
    whole = cfmaps.load(saved / "whole.cfmap")
    whole.save(tmp_path / "again.cfmap")
    again = cfmaps.load(tmp_path / "again.cfmap")
    assert (tmp_path / "again.cfmap").stat().st_size == (saved / "whole.cfmap").stat().st_size
    np.testing.assert_array_equal(np.sort(again.partition.boxes(0).lower), np.sort(whole.partition.boxes(0).lower))
    assert answers(again, rows) == answers(whole, rows)


def test_a_loaded_map_asks_the_live_model_for_its_outputs_too(forest, saved, rows):
    asked = []

    class Watched(type(forest)):
        def predict_proba(self, X):
            asked.append(len(X))
            return super().predict_proba(X)

    watched = Watched()
    watched.__dict__.update(forest.__dict__)
    found = cfmaps.load(saved / "half.cfmap", model=watched).explain(rows[0], target=cfmaps.Interval(0.6, label=1))
    assert (found.status, found.counterfactual is not None, asked != []) == ("optimal", True, True)


def test_the_live_model_confirms_and_another_is_refused(forest, saved, rows, tmp_path):
    loaded = cfmaps.load(saved / "whole.cfmap", model=forest)
    assert (forest.predict(loaded.explain_many(rows).counterfactuals) != forest.predict(rows)).all()
    other = RandomForestClassifier(12, max_depth=5, random_state=1).fit(rows, np.arange(12) % 3)
    with pytest.raises(ValueError, match=r"model must be the one that .* was made from, got a RandomForestClassifier"):
        cfmaps.load(saved / "whole.cfmap", model=other)


def test_hard_votes_and_origin_are_kept(forest, rows, tmp_path):
    hard = cfmaps.CounterfactualMap(forest, votes="hard")
    hard.save(tmp_path / "hard.cfmap")
    loaded = cfmaps.load(tmp_path / "hard.cfmap", model=forest)
    assert answers(loaded, rows) == answers(hard, rows)
    origin = {"model": "RandomForestClassifier", "library": "sklearn", "votes": "hard"}
    assert origin.items() <= loaded.origin.items()


def test_columns_without_names_stay_so(forest, saved, rows):
    import pandas as pd

    frame = pd.DataFrame(rows, columns=["whatever", "the", "caller", "likes"])
    assert len(cfmaps.load(saved / "whole.cfmap").explain_many(frame)) == len(rows)


ANSWER = """
import sys, numpy, cfmaps
found = cfmaps.load(sys.argv[1]).explain_many(numpy.load(sys.argv[2]))
numpy.save(sys.argv[3], found.points)
"""


def test_four_processes_read_one_file(forest, saved, rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    files = [tmp_path / f"{number}.npy" for number in range(4)]
    arguments = [sys.executable, "-c", ANSWER, saved / "whole.cfmap", tmp_path / "rows.npy"]
    processes = [subprocess.Popen([*arguments, file]) for file in files]
    assert [process.wait() for process in processes] == [0] * 4
    expected = cfmaps.CounterfactualMap(forest).explain_many(rows).points.tolist()
    assert [np.load(file).tolist() for file in files] == [expected] * 4


@pytest.mark.parametrize("version", [1])
def test_files_of_every_format_are_read_for_ever(version):
    """The file and its answers were written when the format was new; neither is ever made again."""
    cfmap = cfmaps.load(DATA / f"format-{version}.cfmap")
    expected = cfmaps.load_explanations(DATA / f"format-{version}.json")
    rows = [list(record["query"].values()) for record in expected]
    assert cfmap.partition.n_nodes > 100
    found = [one.to_dict() for one in cfmap.explain_many(rows)]
    assert [{name: one[name] for name in record} for one, record in zip(found, expected, strict=True)] == expected


# ---- damage ----


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The bytes of a small map with columns of every kind, rows to ask about, and the right answers."""
    case = random_model(
        np.random.default_rng(5), n_features=6, n_classes=3, n_trees=9, depth=4, family="forest", n_queries=3
    )
    cfmap = cfmaps.CounterfactualMap(case.model, features=case.features)
    cfmap.build(max_nodes=3000)
    path = tmp_path_factory.mktemp("small") / "small.cfmap"
    cfmap.save(path)
    return path.read_bytes(), case.queries, answers(cfmap, case.queries)


def outcome(path, queries):
    """Answers after every node was read, or "corrupt"."""
    try:
        cfmap = cfmaps.load(path)
        found = answers(cfmap, queries)
        assert cfmap.partition.n_nodes > 100
        return found
    except CorruptMap:
        return "corrupt"


def test_a_file_cut_anywhere_says_so(small, tmp_path):
    content, queries, _ = small
    path = tmp_path / "cut.cfmap"
    for length in np.random.default_rng(0).integers(len(content), size=200):
        path.write_bytes(content[:length])
        assert outcome(path, queries) == "corrupt"
    path.write_bytes(content + b"\0")
    assert outcome(path, queries) == "corrupt"


def test_a_flipped_bit_is_noticed_wherever_it_is(small, tmp_path):
    content, queries, _ = small
    path = tmp_path / "flipped.cfmap"
    path.write_bytes(content)
    rng = np.random.default_rng(1)
    places = np.concatenate([rng.integers(8 * len(content), size=1500), rng.integers(8 * 4096, size=500)])
    with open(path, "r+b", buffering=0) as file:
        for place in places.tolist():
            byte, bit = divmod(place, 8)
            os.pwrite(file.fileno(), bytes([content[byte] ^ 1 << bit]), byte)
            assert outcome(path, queries) == "corrupt"
            os.pwrite(file.fileno(), content[byte : byte + 1], byte)
        assert outcome(path, queries) == small[2]


@pytest.mark.parametrize(
    "content", [b"", b"cfmap", b"\0" * 100, b"\xff" * 5000, b"PK\3\4" * 2000], ids=lambda c: str(len(c))
)
def test_what_is_no_map_is_called_so(tmp_path, content):
    (tmp_path / "m.cfmap").write_bytes(content)
    with pytest.raises(CorruptMap, match=r"m\.cfmap"):
        cfmaps.load(tmp_path / "m.cfmap")


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        cfmaps.load(tmp_path / "none.cfmap")


def test_a_later_format_asks_for_an_update(saved, tmp_path):
    container = _container.read(saved / "half.cfmap")
    _container.write(tmp_path / "later.cfmap", {**container.texts, "format": "cfmaps 999"}, without_seal(container))
    with pytest.raises(CorruptMap, match="has format 999; this version of cfmaps reads up to 1: update it"):
        cfmaps.load(tmp_path / "later.cfmap")


def without_seal(container):
    return {name: np.array(array) for name, array in container.arrays.items() if name != "sha256"}


# ---- files that lie, with digests that fit ----


def inner(test, child, classes=255):
    return child << 32 | test << 8 | classes


def leaf(label):
    return label << 32 | 0xFFFFFF << 8 | 1 << label


def forged(saved, path, change):
    """A file whose nodes are others, and whose digests are right."""
    container = _container.read(saved / "half.cfmap")
    arrays = without_seal(container)
    words = change(arrays["nodes"].copy())
    digests = _core.page_digests(words.view(np.uint8))
    arrays |= {"nodes": words, "nodes.digests": digests, "nodes.roots": _core.page_digests(digests)}
    _container.write(path, container.texts, arrays)
    return path


def chain(words):
    """As deep as there are nodes."""
    pairs = np.arange(len(words) // 2, dtype=np.uint64)
    words[:-1:2] = [inner(0, 1)] + [inner(0, int(2 * pair + 1)) for pair in pairs[1:]]
    words[1::2] = [inner(0, int(2 * pair + 3)) for pair in pairs[: len(words[1::2])]]
    words[2::2] = leaf(0)
    words[-2:] = leaf(0)
    return words


def diamond(words):
    """Both children of a node are parents of the same pair, forty times: a million million ways."""
    for level in range(40):
        words[2 * level + 1 : 2 * level + 3] = inner(level % 7, 2 * level + 3)
    words[0] = inner(3, 1)
    words[81:] = leaf(1)
    return words


def replaced(word):
    def change(words):
        words[0] = word
        return words

    return change


LIES = {
    "test out of range": replaced(inner(0xFFFFF0, 1)),
    "child out of range": replaced(inner(0, 2**32 - 2)),
    "last child out of range": lambda words: replaced(inner(0, len(words) - 1))(words),
    "own child": replaced(inner(0, 0)),
    "no such class": replaced(leaf(7)),
    "open with a child": replaced(1 << 32 | 0xFFFFFE << 8 | 255),
    "no nodes": lambda words: words[:0],
    "chain": chain,
    "diamond": diamond,
}


@pytest.mark.parametrize("lie", LIES)
def test_nodes_that_make_no_map_are_refused(saved, rows, tmp_path, lie):
    path = forged(saved, tmp_path / "lie.cfmap", LIES[lie])
    with pytest.raises(CorruptMap):  # noqa: PT012
        cfmap = cfmaps.load(path)
        cfmap.build()
    with pytest.raises(CorruptMap):  # noqa: PT012
        cfmap = cfmaps.load(path)
        assert cfmap.partition.n_nodes
        cfmap.partition.boxes()


@pytest.mark.parametrize("lie", ["chain", "diamond"])
def test_a_question_to_nodes_that_lie_ends(saved, rows, tmp_path, lie):
    cfmap = cfmaps.load(forged(saved, tmp_path / "lie.cfmap", LIES[lie]))
    with contextlib.suppress(CorruptMap):
        assert len(cfmap.explain_many(rows, time_limit=0.1)) == len(rows)


@pytest.mark.parametrize("part", ["ensemble", "features", "about", "complete"])
def test_records_that_make_no_sense_are_refused(saved, tmp_path, part):
    container = _container.read(saved / "half.cfmap")
    text = container.texts["map"].replace(f'"{part}"', '"something"', 1)
    _container.write(tmp_path / "m.cfmap", {**container.texts, "map": text}, without_seal(container))
    with pytest.raises(CorruptMap):
        cfmaps.load(tmp_path / "m.cfmap")


def test_other_cells_start_an_empty_map_with_a_warning(saved, rows, tmp_path):
    container = _container.read(saved / "whole.cfmap")
    arrays = without_seal(container)
    arrays["lattice.low"][1] += 1
    _container.write(tmp_path / "m.cfmap", container.texts, arrays)
    with pytest.warns(UserWarning, match="it starts empty"):
        cfmap = cfmaps.load(tmp_path / "m.cfmap")
    assert cfmap.partition.n_nodes == 1
    assert answers(cfmap, rows) == answers(cfmaps.load(saved / "whole.cfmap"), rows)


# ---- writing ----

SAVE_FOR_EVER = """
import sys, cfmaps
cfmap = cfmaps.load(sys.argv[1])
print("ready", flush=True)
while True:
    cfmap.save(sys.argv[2])
"""


def test_a_kill_during_a_save_leaves_a_whole_file(saved, rows, tmp_path):
    path = tmp_path / "m.cfmap"
    cfmaps.load(saved / "half.cfmap").save(path)
    expected = answers(cfmaps.load(path), rows)
    for wait in np.random.default_rng(2).uniform(0.005, 0.1, size=5):
        arguments = [sys.executable, "-c", SAVE_FOR_EVER, saved / "whole.cfmap", path]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
        store.verify(path)
        assert answers(cfmaps.load(path), rows) == expected


def test_a_save_that_fails_leaves_nothing_behind(saved, tmp_path, monkeypatch):
    (tmp_path / "m.cfmap").write_text("old")
    cfmap = cfmaps.load(saved / "half.cfmap")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        cfmap.save(tmp_path / "m.cfmap")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("m.cfmap", "old")]


def test_labels_that_no_file_can_hold_are_refused(tmp_path):
    class Colour:
        pass

    tree = {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1], "roots": [0]}
    classes = np.array([Colour(), Colour()])
    ensemble = cfmaps.Ensemble(**tree, value=[[0, 0], [1, 0], [0, 1]], init=[0, 0], classes=classes, n_features=1)
    with pytest.raises(TypeError, match=r"ensemble\.classes cannot be saved: expected numbers, text"):
        cfmaps.CounterfactualMap(ensemble).save(tmp_path / "m.cfmap")
    assert not list(tmp_path.iterdir())


def test_sha256_is_hashlib_s():
    rng = np.random.default_rng(0)
    for size in [0, 1, 55, 56, 63, 64, 65, 4095, 4096, 4097, 9000]:
        data = rng.integers(256, size=size).astype(np.uint8)
        pages = [hashlib.sha256(data[start : start + 4096]).digest() for start in range(0, size, 4096)]
        assert _core.page_digests(data).tobytes() == b"".join(pages)
