# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an S3 server: objects in memory, signatures checked, and faults on demand.

The signature is computed here from the request's bytes by the rules of "Authenticating Requests
(AWS Signature Version 4)"; nothing of the client's is used. A fault is a function of the handler
and the object, kept for a key, and each one is for one request.
"""
import dataclasses
import hashlib
import hmac
import http.server
import socket
import struct
import threading
import urllib.parse
from xml.sax.saxutils import escape

KEY_ID, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a/token+of=a//session"


def quote(text):
    return urllib.parse.quote_from_bytes(text.encode("utf-8", "surrogateescape"), safe="-._~")


def encode_key(key):
    """Escape as the Java of Amazon's store does: a blank is a plus."""
    return "/".join(quote(part).replace("%20", "+") for part in key.split("/"))


def sign(key, *texts):
    for text in texts:
        key = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return key


@dataclasses.dataclass
class Object:
    data: bytes
    version: int = 1

    @property
    def etag(self):
        return f'"{hashlib.md5(self.data).hexdigest()}-{self.version}"'


class Store:
    def __init__(self):
        self.objects, self.faults, self.requests = {}, {}, []
        self.list_faults, self.page_keys, self.region = [], 1000, "eu-test-1"
        self.signs, self.lock = True, threading.Lock()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.store = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def put(self, key, data):
        old = self.objects.get(key)
        self.objects[key] = Object(data, old.version + 1 if old else 1)

    def fail(self, key, *faults):
        self.faults[key] = list(faults)

    def gets(self, key):
        """The ranges of the requests for an object."""
        return [request[1].get("Range") for request in self.requests if request[0] == key]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        """Clients that go away are part of the tests."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    # --- signatures ---

    def check_signature(self):
        """Why the request is refused; None: it is signed as it must be."""
        said = self.headers.get("Authorization", "")
        if not said:
            return "AccessDenied"
        kind, _, rest = said.partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        names = parts["SignedHeaders"].split(";")
        wanted = {"host"} | {name.lower() for name in self.headers if name.lower().startswith("x-amz-")}
        if kind != "AWS4-HMAC-SHA256" or names != sorted(names) or not wanted <= set(names) or \
                not {"x-amz-date", "x-amz-content-sha256"} <= wanted:
            return "MissingSecurityHeader"
        moment = self.headers["x-amz-date"]
        scope = f"{moment[:8]}/{self.server.store.region}/s3/aws4_request"
        path, _, query = self.path.partition("?")
        decoded = urllib.parse.unquote_to_bytes(path)
        pairs = [pair.partition("=")[::2] for pair in query.split("&")] if query else []
        query = "&".join(sorted("=".join(quote(urllib.parse.unquote(text)) for text in pair)
                                for pair in pairs))
        request = "\n".join(
            [self.command, urllib.parse.quote_from_bytes(decoded, safe="/-._~"), query] +
            [f"{name}:{' '.join(self.headers[name].split())}" for name in names] +
            ["", ";".join(names), self.headers["x-amz-content-sha256"]])
        text = "\n".join([kind, moment, scope, hashlib.sha256(request.encode()).hexdigest()])
        key = sign(f"AWS4{SECRET}".encode(), moment[:8], self.server.store.region, "s3",
                   "aws4_request")
        good = parts["Credential"] == f"{KEY_ID}/{scope}" and \
            self.headers["x-amz-security-token"] == TOKEN and parts["Signature"] == sign(key, text).hex()
        return None if good else "SignatureDoesNotMatch"

    # --- answers ---

    def answer(self, status, body, headers=()):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code, headers=()):
        self.answer(status, f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message>"
                    "</Error>".encode(), headers)

    def break_off(self, with_reset):
        self.close_connection = True
        self.wfile.flush()
        if with_reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
        else:
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    def send_object(self, found, count=None, leave_out=()):
        """The object, or `count` bytes of what is asked for."""
        asked, size, start = self.headers.get("Range"), len(found.data), 0
        headers = [("ETag", found.etag), ("x-amz-version-id", "\x1b[31m?")]
        if self.headers.get("If-Match", found.etag) != found.etag:
            return self.refuse(412, "PreconditionFailed")
        if asked and "Range" not in leave_out:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            headers.append(("Content-Range", f"bytes {start}-{size - 1}/{size}"))
        self.send_response(206 if start else 200)
        headers.append(("Content-Length", str(size - start)))
        for name, value in headers:
            if name not in leave_out:
                self.send_header(name, value)
        self.end_headers()
        end = size if count is None else min(size, start + count)
        self.wfile.write(memoryview(found.data)[start:end])
        if "Content-Length" in leave_out:
            self.close_connection = True
        return None

    def do_GET(self):
        store = self.server.store
        path, _, query = self.path.partition("?")
        key = urllib.parse.unquote(path, errors="surrogateescape").removeprefix("/")
        bucket, _, key = key.partition("/")
        with store.lock:
            store.requests.append((key, self.headers))
        why = self.check_signature() if store.signs else None
        if why:
            return self.refuse(403, why)
        if bucket != "job":
            return self.refuse(404, "NoSuchBucket")
        if query:
            return self.list_objects(dict(urllib.parse.parse_qsl(query, True)))
        found = store.objects.get(key)
        if not found:
            return self.refuse(404, "NoSuchKey")
        with store.lock:
            faults = store.faults.get(key)
            fault = faults.pop(0) if faults else None
        return fault(self, found) if fault else self.send_object(found)

    def list_objects(self, asked):
        store = self.server.store
        if store.list_faults:
            return store.list_faults.pop(0)(self, asked)
        after = asked.get("start-after", "")
        if "continuation-token" in asked:
            after = bytes.fromhex(asked["continuation-token"].removeprefix("t/+=")).decode()
        keys = sorted(key for key in store.objects
                      if key.startswith(asked["prefix"]) and key > after)
        count = min(store.page_keys, int(asked.get("max-keys", 1000)))
        more = len(keys) > count
        body = ["<?xml version='1.0' encoding='UTF-8'?>",
                '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>job</Name>',
                f"<IsTruncated>{str(more).lower()}</IsTruncated>"]
        for key in keys[:count]:
            found = store.objects[key]
            body.append(f"<Contents><Key>{escape(encode_key(key))}</Key><LastModified>2026-01-01T00:00:00Z"
                        f"</LastModified><ETag>{escape(found.etag)}</ETag><Size>{len(found.data)}"
                        "</Size><Owner><ID>x</ID></Owner></Contents>")
        if more:
            token = "t/+=" + keys[count - 1].encode().hex()
            body.append(f"<NextContinuationToken>{token}</NextContinuationToken>")
        body.append("<EncodingType>url</EncodingType></ListBucketResult>")
        return self.answer(200, "".join(body).encode())


# --- faults ---


def status(number, code="SlowDown", headers=()):
    return lambda handler, found: handler.refuse(number, code, headers)


def cut(count, with_reset=False):
    def fault(handler, found):
        handler.send_object(found, count)
        handler.break_off(with_reset)
    return fault


def drop(handler, _):
    handler.break_off(True)


def replaced(count, data):
    """Cut off, and another object when it is asked for again."""
    def fault(handler, found):
        handler.send_object(found, count)
        key = next(key for key, value in handler.server.store.objects.items() if value is found)
        handler.server.store.put(key, data)
        handler.break_off(False)
    return fault


def without(*headers, count=None):
    def fault(handler, found):
        handler.send_object(found, count, headers)
        if count is not None:
            handler.break_off(False)
    return fault


def body(text, code=200):
    return lambda handler, _: handler.answer(code, text if isinstance(text, bytes) else text.encode())
