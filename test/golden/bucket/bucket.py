#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Objects of a store are what files are, whatever the network does: bucket.py MAKE_FLEET TOOL

A system without libcurl, or a build without objects, skips.
"""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import stand_in

SKIPPED = 77
maker, tool = (pathlib.Path(word).resolve() for word in sys.argv[1:])
work = pathlib.Path(tempfile.mkdtemp())
store = stand_in.Store()
failures = []


def expect(what, is_so):
    if not is_so:
        failures.append(what)
        print(f"not so: {what}", file=sys.stderr)


def environment(**changes):
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith("AWS_") and not key.lower().endswith("_proxy") and key != "COLUMNS"}
    kept |= {"HOME": str(work), "AWS_ENDPOINT_URL": store.url, "AWS_REGION": store.region,
             "AWS_ACCESS_KEY_ID": stand_in.KEY_ID, "AWS_SECRET_ACCESS_KEY": stand_in.SECRET,
             "AWS_SESSION_TOKEN": stand_in.TOKEN}
    return {key: value for key, value in (kept | changes).items() if value is not None}


# The kernel counts a child's size from its parent's on: a small parent stands between.
SMALL_PARENT = """import os, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
os.write(int(sys.argv[1]), str(peak).encode())
sys.exit(code)"""


def measure(*words):
    """The largest resident size of the tool, in bytes."""
    reader, writer = os.pipe()
    subprocess.run([sys.executable, "-ISc", SMALL_PARENT, str(writer), tool, *words], cwd=work,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment(),
                   pass_fds=[writer], check=True)
    os.close(writer)
    with os.fdopen(reader) as told:
        return int(told.read())


def run(*words, code=None, **changes):
    """Return all that is said on both streams."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as told:
        child = subprocess.Popen([tool, *words], cwd=work, stdin=subprocess.DEVNULL, stdout=said,
                                 stderr=told, env=environment(**changes))
        child.wait()
        texts = []
        for stream in said, told:
            stream.seek(0)
            texts.append(stream.read().decode(errors="surrogateescape"))
    if code is not None:
        expect(f"{words} ends with {code}, not {child.returncode}: {texts[1]}",
               child.returncode == code)
    expect(f"no secret is told: {texts}",
           not any(word in text for text in texts for word in (stand_in.SECRET, stand_in.TOKEN)))
    return texts


def make_job():
    subprocess.run([maker, work / "sick", "7", "24", "4", "leak=13", "extra=7", "oom=21"], check=True)
    for path in (work / "sick").iterdir():
        data = path.read_bytes()
        if "rank3_" in path.name:
            data = gzip.compress(data)
            path.unlink()
            path = path.with_name(path.name + ".gz")
            path.write_bytes(data)
        store.put(f"runs/sick/{path.name}", data)
    store.put("runs/sick/notes.json", b"{}")
    store.put("runs/sick/.hidden/rank99.pickle", b"")
    store.put("runs/sick/", b"")
    store.put("runs/sick-not/rank0.pickle", b"")


def as_local(text):
    return " ".join(text.replace("s3://job/runs/sick", "sick").split())


def check_same():
    for words in ["--json"], []:
        for name in "sick/", "sick":
            here, _ = run("fleet", name, *words, code=1)
            there, error = run("fleet", f"s3://job/runs/{name}", *words, code=1)
            expect(f"{name} {words} is what is on the disk: {error}", as_local(there) == as_local(here))
    store.page_keys = 5
    expect("in pages", as_local(run("fleet", "s3://job/runs/sick")[0]) == as_local(here))
    expect("by a pattern", len(json.loads(run("fleet", "s3://job/runs/s?ck/rank1*", "--json",
                                              "--no-settings")[0])["files"]) == 11)
    expect("by a pattern of folders", len(json.loads(run(
        "fleet", "s3://job/*/sick", "--json", "--no-settings")[0])["files"]) == 24)
    store.page_keys = 1000
    name = "rank21_memory_snapshot.pickle"
    for command in "info", "explain":
        here, _ = run(command, f"sick/{name}")
        there, _ = run(command, f"s3://job/runs/sick/{name}")
        expect(f"{command} of an object", as_local(there) == as_local(here))


def check_store_of_rows():
    rows = work / "rows.sqlite"
    first, _ = run("fleet", "s3://job/runs/sick", "--store", rows, "--no-settings")
    before = len(store.requests)
    again, _ = run("fleet", "s3://job/runs/sick", "--store", rows, "--no-settings")
    expect("no object is read again", first == again and len(store.requests) - before == 2)
    store.put("runs/sick/rank5_memory_snapshot.pickle",
              store.objects["runs/sick/rank5_memory_snapshot.pickle"].data)
    before = len(store.requests)
    run("fleet", "s3://job/runs/sick", "--store", rows, "--no-settings")
    expect("an object of another version is", len(store.requests) - before == 3)


def check_sweep():
    key, rows = "sweep/one.pickle", work / "sweep.sqlite"
    runs = []
    for rank in 1, 1, 7:
        store.put(key, store.objects[f"runs/sick/rank{rank}_memory_snapshot.pickle"].data)
        runs.append(run("sweep", "--grid", "max_split_size_mb=20,40", f"s3://job/{key}", "--store",
                        rows)[0])
    here, _ = run("sweep", "--grid", "max_split_size_mb=20,40", "sick/rank7_memory_snapshot.pickle")
    here = here.replace("sick/rank7_memory_snapshot.pickle", f"s3://job/{key}").split()
    expect("another version is replayed anew", runs[0] == runs[1] and runs[2].split() == here)


ODD = "odd/ä +&?#%41 %2F'\"<>;=@:,$!*()~\\|^`{}[]\t\x01\x7f/a..b/x//rank3.pickle"


def visible(text):
    """Return a name without all that a report writes as "?"."""
    return "".join(letter for letter in text if letter.isprintable() and letter != "?")


def check_keys():
    data = store.objects["runs/sick/rank1_memory_snapshot.pickle"].data
    store.put("odd/../x/./rank3.pickle", data)
    there, error = run("info", "s3://job/odd/../x/./rank3.pickle")
    expect("dots are of the key, or refused by libcurl", there or "path-as-is" in error)
    for key in (ODD, "odd/\u2028\x1b[31m.pickle", "odd/k/" + "n" * 900 + ".pickle"):
        store.put(key, data)
        run("info", f"s3://job/{key}", code=0)
        expect(f"{key!r} is asked for", store.gets(key))
    report = json.loads(run("fleet", "s3://job/odd", "--json", "--no-settings")[0])
    expect("odd keys are listed", sorted(visible(file["path"]) for file in report["files"]) ==
           sorted(visible(f"s3://job/{key}") for key in store.objects
                  if key.startswith("odd/") and "/.." not in key))
    text = "".join(run("fleet", "s3://job/odd", "--all", "--no-settings"))
    expect("no key moves a cursor", "\x1b" not in text and "\x01" not in text)


def check_mended():
    key = "runs/sick/rank2_memory_snapshot.pickle"
    size = len(store.objects[key].data)
    here, _ = run("info", "sick/rank2_memory_snapshot.pickle")
    for what, faults, ranges in (
            ("busy", [stand_in.status(503), stand_in.status(500, "InternalError"),
                      stand_in.status(429)], [None] * 4),
            ("dropped", [stand_in.drop], [None] * 2),
            ("cut off", [stand_in.cut(1000), stand_in.cut(0), stand_in.cut(5000)],
             [None, "bytes=1000-", "bytes=1000-", "bytes=6000-"]),
            ("reset", [stand_in.cut(size - 1, True)], None),
            ("busy in the middle", [stand_in.cut(10), stand_in.status(503)],
             [None, "bytes=10-", "bytes=10-"])):
        store.fail(key, *faults)
        store.requests.clear()
        there, error = run("info", f"s3://job/{key}", code=0)
        expect(f"{what}: the same: {error}", as_local(there) == as_local(here) and not store.faults[key])
        if ranges:
            expect(f"{what}: {store.gets(key)}", store.gets(key) == ranges)


def check_given_up():
    key = "runs/sick/rank2_memory_snapshot.pickle"
    data = store.objects[key].data
    never = [stand_in.cut(1000)] * 9
    for what, faults, said, attempts in (
            ("always cut", never, "3 attempts failed", 3),
            ("always busy", [stand_in.status(503)] * 9, "503 SlowDown", 3),
            ("forbidden", [stand_in.status(403, "\x7f&#27;[31mDenied")], "403", 1),
            ("replaced", [stand_in.replaced(1000, data[::-1])], "changed while it was read", 2),
            ("no tag", [stand_in.without("ETag", count=100)], "no ETag", 1),
            ("no length", [stand_in.without("Content-Length")], "how many bytes", 1),
            ("other bytes", [stand_in.cut(100), stand_in.without("Content-Range")],
             "other bytes", 2),
            ("no range", [stand_in.cut(100), stand_in.without("Range")], "other bytes", 2),
            ("elsewhere", [stand_in.status(301, "PermanentRedirect",
                                           [("x-amz-bucket-region", "us-far-2"),
                                            ("Location", "http://127.0.0.1:9/")])],
             "AWS_REGION=us-far-2", 1)):
        store.fail(key, *faults)
        store.requests.clear()
        _, error = run("info", f"s3://job/{key}", code=3, AWS_MAX_ATTEMPTS="3")
        expect(f"{what}: {error}", said in error and error.count("\n") == 1 and "\x1b" not in error)
        expect(f"{what}: {len(store.gets(key))} requests", len(store.gets(key)) == attempts)
        store.put(key, data)
    store.fail(key, *never)
    report = json.loads(run("fleet", "s3://job/runs/sick", "--json", "--no-settings",
                            AWS_MAX_ATTEMPTS="2")[0])
    uses = {file["use"] for file in report["files"]}
    broken = [file for file in report["files"] if file["use"] == "broken"]
    expect(f"one file is unreadable, the others count: {broken}",
           len(broken) == 1 and report["used"] == 23 and "attempts failed" in broken[0]["why"])
    store.faults.clear()


def check_slow():
    """A store that gives nothing is given up; one that gives little is not."""
    key, released = "slow/rank0.pickle", threading.Event()
    store.put(key, store.objects["runs/sick/rank1_memory_snapshot.pickle"].data)

    def stall(handler, found):
        handler.send_object(found, 100)
        released.wait()

    def drip(handler, found):
        handler.send_object(found, 100)
        for at in range(100, len(found.data), 8192):
            time.sleep(0.02)
            handler.wfile.write(found.data[at:at + 8192])

    store.fail(key, drip, stall)
    run("info", f"s3://job/{key}", code=0)
    began = time.monotonic()
    _, error = run("info", f"s3://job/{key}", code=3, AWS_MAX_ATTEMPTS="1")
    released.set()
    expect(f"a stall is told: {error}", "less than 1 kB/s" in error)
    expect("after 20 s", time.monotonic() - began > 19)


LIST = "<ListBucketResult><IsTruncated>{}</IsTruncated>{}</ListBucketResult>"
ENTRY = "<Contents><Key>{}</Key><Size>{}</Size></Contents>"


def check_lists():
    again = LIST.format("true", "<NextContinuationToken>x</NextContinuationToken>")
    for what, answers, said in (
            ("no XML", ["nothing"], "no XML"), ("empty", [""], "no XML"),
            ("cut off", ["<ListBucketResult><Contents>"], "no XML"),
            ("a page of a proxy", ["<html><body>hello</body></html>"], "another kind of XML"),
            ("an error of 200", ["<Error><Code>InternalError</Code></Error>"], "InternalError"),
            ("no size", [LIST.format("false", ENTRY.format("a", ""))], "without a key or a size"),
            ("a huge size", [LIST.format("false", ENTRY.format("a", 10 ** 19))], "no number of bytes"),
            ("a negative size", [LIST.format("false", ENTRY.format("a", -1))], "no number of bytes"),
            ("no token", [LIST.format("true", "")], "no word of how"),
            ("a circle", [again] * 3, "goes on where it began"),
            ("a long key", [LIST.format("false", ENTRY.format("k" * 9000, 1))], "over 8 kB"),
            ("depth", [LIST.format("false", "<a>" * 20 + "</a>" * 20)], "16 levels"),
            ("many", [LIST.format("false", ENTRY.format("k", 1) * 10001)], "10,000 objects"),
            ("a document type", ["<!DOCTYPE a [<!ENTITY b 'c'>]>" + LIST.format("false", "&b;")],
             "a document type"),
            ("a zero", [LIST.format("false", "<EncodingType>url</EncodingType>" + ENTRY.format(
                "a%00b", 1))], "broken escape")):
        store.list_faults = [stand_in.body(text) for text in answers]
        _, error = run("fleet", "s3://job/runs/", code=3)
        expect(f"{what}: {error}", said in error and error.count("\n") == 1)
    store.list_faults = [stand_in.status(503)] * 2 + [stand_in.drop]
    run("fleet", "s3://job/runs/sick/", "--no-settings", code=1)
    store.list_faults = [stand_in.status(503)] * 9
    _, error = run("fleet", "s3://job/runs/sick/", code=3, AWS_MAX_ATTEMPTS="2")
    expect(f"a store that is busy: {error}", "503 SlowDown" in error)
    store.list_faults = []


def check_refusals():
    key = "s3://job/runs/sick/rank1_memory_snapshot.pickle"
    for words, changes, said in (
            (["info", "s3://job"], {}, "no object in it"), (["info", "s3://../x"], {}, "no name"),
            (["info", "s3://a@b/x"], {}, "no name"), (["fleet", "s3:///x"], {}, "no name"),
            (["info", "s3://job/none"], {}, "404 NoSuchKey"),
            (["info", "s3://other/none"], {}, "NoSuchBucket"),
            (["fleet", "s3://job/none"], {}, "no object has such a name"),
            (["fleet", "s3://job/none*"], {}, "no object has such a name"),
            (["info", key], {"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch"),
            (["info", key], {"AWS_SECRET_ACCESS_KEY": None}, "no AWS_SECRET_ACCESS_KEY"),
            (["info", key], {"AWS_ACCESS_KEY_ID": None}, "nobody signed"),
            (["info", key], {"AWS_ACCESS_KEY_ID": "a\nb: c"}, "character that it cannot have"),
            (["info", key], {"AWS_SESSION_TOKEN": "x" * 9000}, "more than 8191 characters"),
            (["info", key], {"AWS_REGION": "a:b"}, "AWS_REGION was expected"),
            (["info", key], {"AWS_ENDPOINT_URL": "file:///etc"}, "AWS_ENDPOINT_URL was expected"),
            (["info", key], {"AWS_ENDPOINT_URL": "http://a?b"}, "AWS_ENDPOINT_URL was expected"),
            (["info", key], {"AWS_MAX_ATTEMPTS": "0"}, "AWS_MAX_ATTEMPTS was expected"),
            (["info", key], {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"},
             "127.0.0.1"),
            (["info", key], {"AWS_ENDPOINT_URL": "http://no.invalid:9", "AWS_MAX_ATTEMPTS": "2"},
             "2 attempts failed, the last: Could not resolve host: no.invalid")):
        _, error = run(*words, code=3, **changes)
        expect(f"{words} {changes}: {error}", said in error and error.count("\n") == 1)


def check_who_asks():
    key = "s3://job/runs/sick/rank1_memory_snapshot.pickle"
    nobody = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_SESSION_TOKEN": None}
    (work / ".aws").mkdir()
    (work / ".aws/credentials").write_text(
        "# mine\n[default]\naws_access_key_id = other\naws_secret_access_key = x\n"
        f"[ ci ]\naws_access_key_id={stand_in.KEY_ID}\n"
        f"aws_secret_access_key = {stand_in.SECRET}  \naws_session_token = {stand_in.TOKEN}\n[end]\n")
    (work / ".aws/config").write_text(f"[default]\nregion = x-1\n[profile ci]\nregion = {store.region}\n"
                                      f"s3 =\n  region = y-1\nendpoint_url = {store.url}/\n")
    run("info", key, code=0, AWS_PROFILE="ci", AWS_REGION=None, AWS_ENDPOINT_URL=None, **nobody)
    _, error = run("info", key, code=3, **nobody)
    expect(f"another profile: {error}", "SignatureDoesNotMatch" in error)
    shutil.rmtree(work / ".aws")
    store.signs = False
    store.requests.clear()
    run("info", key, code=0, **nobody)
    expect("nobody signs", "Authorization" not in store.requests[-1][1])
    store.signs = True


def check_memory():
    data = b"".join(b"a %d 512 0 %d\nf %d 512 0 %d\n" % (i, i, i, i) for i in range(400000))
    (work / "large.trace").write_bytes(data)
    store.put("large.trace", data)
    here, _ = run("info", "large.trace", code=0)
    store.fail("large.trace", stand_in.cut(9 << 20), stand_in.cut(1 << 20))
    there, _ = run("info", "s3://job/large.trace", code=0)
    expect("the same", there.replace("s3://job/", "").split() == here.split())
    beyond = measure("info", "s3://job/large.trace") - measure("info", "large.trace")
    expect(f"memory beyond a file's: {beyond}", 1 << 20 < beyond < 16 << 20)


make_job()
_, told = run("info", "s3://job/runs/sick/notes.json")
if "libcurl" in told:
    print(f"SKIPPED: {told.strip()}")
    sys.exit(SKIPPED)
for check in (check_same, check_store_of_rows, check_sweep, check_keys, check_mended, check_given_up, check_lists,
              check_refusals, check_who_asks, check_memory, check_slow):
    check()
shutil.rmtree(work)
sys.exit(1 if failures else 0)
