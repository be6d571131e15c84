"""A small object store that is strict and fails on purpose: it verifies signatures (AWS Signature Version 4, written here from its
description, not with botocore) and the SHA-256 of every body, and answers what its script says.

A script is a list of (pattern of "METHOD key?query", count, fault): the first entry that fits and has some count left decides.
"""

import hashlib
import hmac
import re
import socket
import struct
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ACCESS, SECRET = "AKIASTUB", "stub/secret+key"


def signature(method, path, query, headers, payload, signed, date, region, secret):
    canonical_query = "&".join(sorted(part if "=" in part else part + "=" for part in query.split("&"))) if query else ""
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed)
    canonical = "\n".join([method, path, canonical_query, lines, ";".join(signed), payload])
    scope = f"{date[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (date[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    # -- answers
    def answer(self, status, body=b"", headers=()):
        fault = self.fault
        self.send_response(status)
        for name, value in headers:
            if fault == "wrong_range" and name == "Content-Range":
                first, rest = value[6:].split("-", 1)
                value = f"bytes {int(first) + 1}-{rest}"
            self.send_header(name, value)
        length = len(body)
        if self.command == "HEAD":
            length = int(dict(headers).get("Length", 0))
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "flip" and body:
            body = body[:-1] + bytes([body[-1] ^ 1])
        if fault in ("cut", "reset_amid"):
            self.wfile.write(body[:len(body) // 2])
            self.wfile.flush()
            return self.hang_up(reset=fault == "reset_amid")
        if fault == "slow":  # 2 kB/s
            for i in range(0, len(body), 2000):
                self.wfile.write(body[i:i + 2000])
                self.wfile.flush()
                time.sleep(1)
            return None
        if fault == "trickle":
            for i in range(0, len(body), 1):
                self.wfile.write(body[i:i + 1])
                self.wfile.flush()
                time.sleep(0.5)
        self.wfile.write(body)

    def error(self, status, code, message="no"):
        self.answer(status, f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode())

    def hang_up(self, reset=False):
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close() if reset else self.connection.shutdown(socket.SHUT_RDWR)

    # -- requests
    def do(self):
        store, self.fault = self.server.store, None
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        key = urllib.parse.unquote(path).removeprefix("/bucket").removeprefix("/")
        fault = store.fault_of(f"{self.command} {key}?{query}")
        try:
            if fault == "reset_early":
                return self.hang_up(reset=True)
            body = self.rfile.read(length)
            if len(body) < length:
                return self.hang_up()
            if fault == "silent":
                return self.hang_up()
            if fault == "delay":
                time.sleep(1)
            if fault == "hang":
                time.sleep(30)
                return self.hang_up()
            if fault in ("500", "502", "503", "504", "429"):
                self.close_connection = True
                return self.answer(int(fault))
            if fault == "slow_down":
                return self.error(503, "SlowDown")
            if fault == "expired":
                return self.error(400, "ExpiredToken", message=self.headers.get("x-amz-security-token", ""))
            if fault == "echo_late":  # where a message is cut
                return self.error(400, "Strange", message="x" * 190 + self.headers.get("x-amz-security-token", ""))
            if fault == "echo":  # a server that says all it got
                token = self.headers.get("x-amz-security-token", "")
                return self.error(400, "Strange", message=token + self.headers.get("authorization", ""))
            if fault == "skew":
                return self.error(403, "RequestTimeTooSkewed")
            if fault == "moved":
                self.fault = None
                return self.answer(301, b"<Error><Code>PermanentRedirect</Code></Error>", [("x-amz-bucket-region", "eu-west-1")])
            if fault == "corrupt":
                body = body[:-1] + bytes([body[-1] ^ 1]) if body else body
            if fault != "lost":
                self.fault = fault
            if not self.verify(path, query, body):
                return None
            if fault == "inside":
                return self.error(200, "InternalError")
            if fault == "lost":  # done, but nobody hears of it
                self.answer = lambda *a, **k: self.hang_up(reset=True)
            return store.serve(self, key, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)), body)
        except (ConnectionError, OSError):
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do

    def verify(self, path, query, body):
        headers = {name.lower(): value for name, value in self.headers.items()}
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
                             headers.get("authorization", ""))
        payload = headers.get("x-amz-content-sha256")
        if not found or found[1] != ACCESS or not payload:
            self.error(403, "AccessDenied")
            return False
        signed = found[4].split(";")
        must = {"host"} | {name for name in headers if name.startswith("x-amz-")}
        expected = signature(self.command, path, query, headers, payload, signed, headers["x-amz-date"], found[3], SECRET)
        if not must <= set(signed) or signed != sorted(signed) or expected != found[5]:
            self.error(403, "SignatureDoesNotMatch")
            return False
        if hashlib.sha256(body).hexdigest() != payload:
            self.error(400, "XAmzContentSHA256Mismatch")
            return False
        return True


class Stub:
    def __init__(self, script=(), random=None):
        self.script = [list(entry) for entry in script]
        self.random = random  # (generator, faults, share): any request fails so
        self.lock = threading.Lock()
        self.files, self.uploads, self.completed, self.requests, self.next_id = {}, {}, [], [], 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.server.store = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def fault_of(self, request):
        with self.lock:
            self.requests.append(request)
            for entry in self.script:
                if entry[1] > 0 and re.search(entry[0], request):
                    entry[1] -= 1
                    return entry[2]
            if self.random and self.random[0].random() < self.random[2]:
                return self.random[0].choice(self.random[1])
        return None

    def etag(self, key):
        return self.files[key][1]

    def serve(self, http, key, query, body):
        with self.lock:
            reply = self.reply(http, key, query, body)
        reply()

    def reply(self, http, key, query, body):
        verb = http.command
        if verb == "POST" and "uploads" in query:
            self.next_id += 1
            self.uploads[str(self.next_id)] = (key, {})
            text = f"<InitiateMultipartUploadResult><UploadId>{self.next_id}</UploadId></InitiateMultipartUploadResult>".encode()
            return lambda: http.answer(200, text)
        if "uploadId" in query and query["uploadId"] not in self.uploads:
            return lambda: http.error(404, "NoSuchUpload")
        if verb == "PUT" and "partNumber" in query:
            tag = '"' + hashlib.md5(body).hexdigest() + '"'
            self.uploads[query["uploadId"]][1][int(query["partNumber"])] = (body, tag)
            return lambda: http.answer(200, headers=[("ETag", tag)])
        if verb == "POST":
            _, parts = self.uploads.pop(query["uploadId"])
            named = re.findall(rb"<PartNumber>(\d+)</PartNumber><ETag>(?:\"|&quot;)(\w+)(?:\"|&quot;)</ETag>", body)
            if [(int(n), b'"' + t + b'"') for n, t in named] != [(n, parts[n][1].encode()) for n in sorted(parts)]:
                return lambda: http.error(400, "InvalidPart")
            digests = b"".join(hashlib.md5(parts[n][0]).digest() for n in sorted(parts))
            self.files[key] = (b"".join(parts[n][0] for n in sorted(parts)), f'"{hashlib.md5(digests).hexdigest()}-{len(parts)}"')
            self.completed.append(key)
            return lambda: http.answer(200, b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
        if verb == "DELETE":
            self.uploads.pop(query["uploadId"]) if "uploadId" in query else self.files.pop(key, None)
            return lambda: http.answer(204)
        if verb == "PUT":
            if http.headers.get("If-None-Match") == "*" and key in self.files:
                return lambda: http.error(412, "PreconditionFailed")
            self.files[key] = (body, '"' + hashlib.md5(body).hexdigest() + '"')
            self.completed.append(key)
            return lambda: http.answer(200, headers=[("ETag", self.etag(key))])
        if "uploads" in query:
            text = "".join(f"<Upload><Key>{k}</Key><UploadId>{i}</UploadId></Upload>" for i, (k, _) in self.uploads.items())
            return lambda: http.answer(200, f"<ListMultipartUploadsResult>{text}</ListMultipartUploadsResult>".encode())
        if not key:  # whatever prefix is asked for: a client may not take a list on trust
            text = "".join(f"<Contents><Key>{k}</Key><Size>{len(v[0])}</Size></Contents>" for k, v in sorted(self.files.items()))
            return lambda: http.answer(200, f"<ListBucketResult>{text}</ListBucketResult>".encode())
        if key not in self.files:
            return lambda: http.error(404, "NoSuchKey") if verb == "GET" else http.answer(404)
        data, tag = self.files[key]
        if verb == "HEAD":
            return lambda: http.answer(200, headers=[("Length", str(len(data))), ("ETag", tag)])
        if http.headers.get("If-Match") not in (None, tag):
            return lambda: http.error(412, "PreconditionFailed")
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", http.headers.get("Range") or "")
        if not found:
            return lambda: http.answer(200, data, [("ETag", tag)])
        first, last = int(found[1]), min(int(found[2]), len(data) - 1)
        if first >= len(data):
            return lambda: http.error(416, "InvalidRange")
        return lambda: http.answer(206, data[first:last + 1], [("ETag", tag), ("Content-Range", f"bytes {first}-{last}/{len(data)}")])
