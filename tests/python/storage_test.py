"""The storage client against moto's server, which checks signatures: what boto3 reads and writes, ours reads and writes."""

import hashlib
import os
import random
import sys
import tempfile
from pathlib import Path

from storage_server import MotoServer, Probe

BUCKET = "wt-bucket"
MEBI = 1 << 20


def random_bytes(n, seed=1):
    return random.Random(seed).randbytes(n)


def test_files(server, key, secret, folder):
    probe = Probe(f"s3://{BUCKET}/runs/a b", S3_ENDPOINT_URL=server.url, AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret)
    s3 = server.client("s3", key, secret)
    # names with every kind of byte that a signature or a URL treats in its own way
    for name in ("plain", "deep/er/file.txt", "sp ace", "pl+us", "eq=al", "at@colon:semi;", "tilde~", "per%cent", "umläut", "q?and&", "star*(x)'!", "hash#"):
        probe.good("put", name, "text of " + name)
        assert s3.get_object(Bucket=BUCKET, Key="runs/a b/" + name)["Body"].read().decode() == "text of " + name, name
        assert probe.good("read", name, "") .decode() == "text of " + name
    listed = [line.split(" ", 1)[1] for line in probe.good("list", "", "").decode().splitlines()]
    assert listed == sorted(listed) and "umläut" in listed and "per%cent" in listed and len(listed) == 12, listed
    assert [line for line in probe.good("list", "deep/", "").decode().splitlines()] == ["24 deep/er/file.txt"]
    probe.good("remove", "plain", "", "remove", "plain", "")
    assert probe.good("size", "plain", "") == b"none\n"
    assert "not_found" in probe.error("read", "plain", "") and "NoSuchKey" in probe.error("read", "plain", "")
    assert "not_found" in probe.error("fetch", "plain", folder / "no")
    assert not (folder / "no").exists()
    assert "longer than the 3 bytes" in probe.error("read", "deep/er/file.txt", 3)

    # every size around the bounds of parts
    for n in (0, 1, 8 * MEBI - 1, 8 * MEBI, 8 * MEBI + 1, 16 * MEBI, 16 * MEBI + 1, 33 * MEBI + 7):
        data = random_bytes(n, n)
        (folder / "out").write_bytes(data)
        probe.good("upload", "big", folder / "out", "fetch", "big", folder / "in")
        assert (folder / "in").read_bytes() == data, n
        assert probe.good("size", "big", "") == f"{n}\n".encode()
        head = s3.head_object(Bucket=BUCKET, Key="runs/a b/big")
        assert head["ContentLength"] == n and ("-" in head["ETag"]) == (n > 16 * MEBI), (n, head)
        assert s3.get_object(Bucket=BUCKET, Key="runs/a b/big")["Body"].read() == data
    assert sorted(p.name for p in folder.iterdir()) == ["in", "out"], "nothing is left behind"
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)

    # what boto3 wrote
    s3.put_object(Bucket=BUCKET, Key="runs/a b/theirs", Body=random_bytes(20 * MEBI))
    probe.good("fetch", "theirs", folder / "in")
    assert hashlib.md5((folder / "in").read_bytes()).digest() == hashlib.md5(random_bytes(20 * MEBI)).digest()

    # only where it is absent
    probe.good("put_new", "once", "first")
    assert probe.error("put_new", "once", "second").startswith("exists:")
    assert probe.good("read", "once", "") == b"first"
    assert probe.good("put", "once", "third") == b"" and probe.good("read", "once", "") == b"third"

    # uploads that a process left half done
    for name in ("left", "elsewhere"):
        s3.create_multipart_upload(Bucket=BUCKET, Key=("runs/a b/" if name == "left" else "") + name)
    probe.good("abandon", "", "")
    assert [u["Key"] for u in s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]] == ["elsewhere"]

    # more names than one answer lists
    many = Probe(f"s3://{BUCKET}/many", **{k: v for k, v in probe.environment.items() if k not in ("PATH", "HOME")})
    for i in range(23):
        s3.put_object(Bucket=BUCKET, Key=f"many/{i:05}", Body=b"x")
    assert len(many.good("list", "", "").splitlines()) == 23


def test_refusals(server, key, secret, folder):
    def probe(address=f"s3://{BUCKET}/x", **variables):
        return Probe(address, **{"S3_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, **variables})

    for verb in (("put", "a", "text"), ("read", "a", ""), ("size", "a", ""), ("list", "", ""), ("remove", "a", "")):
        told = probe(AWS_SECRET_ACCESS_KEY="wrong/secret+of40characters").error(*verb)
        assert told.startswith("denied:") and "SignatureDoesNotMatch" in told, told
        told = probe(AWS_ACCESS_KEY_ID="AKIAUNKNOWN").error(*verb)
        assert told.startswith("denied:") and "InvalidAccessKeyId" in told and "AWS_ACCESS_KEY_ID" in told, told
    assert "wrong_place" in probe("s3://no-such-bucket/x").error("put", "a", "text")
    assert "set both or neither" in probe(AWS_SECRET_ACCESS_KEY=None).error("read", "a", "")
    for address, word in (("az://c/x", "s3proxy"), ("abfss://c/x", "rclone"), ("gs://bucket/x", "storage.googleapis.com"), ("oci://bucket/x", "oci.customer-oci.com"),
                          ("s3:///x", "needs s3://bucket"), ("s3://bucket/../x", "allowed are relative paths"), ("ftp://x", "allowed are s3://"), ("file://host/x", "three slashes")):
        assert word in probe(address).error("list", "", ""), address
    for name in ("../x", "/x", "a//b", "a/./b", ""):
        assert "relative paths" in probe().error("read", name, ""), name
    assert "cannot be opened" not in probe().error("upload", "a", folder / "missing")
    told = probe(S3_ENDPOINT_URL="http://127.0.0.1:1", AWS_MAX_ATTEMPTS="2").error("read", "a", "")
    assert told.startswith("unreachable:") and "2 of 2 tries" in told and "127.0.0.1:1" in told, told
    assert "needs http(s)://" in probe(S3_ENDPOINT_URL="127.0.0.1:9").error("read", "a", "")


def test_without_libcurl(folder):
    """Folders need no libcurl; a bucket says what to install."""
    (folder / "libraries").mkdir()
    (folder / "libraries/libcurl.so.4").write_bytes(b"no library")
    libraries = str(folder / "libraries")
    assert Probe(str(folder / "store"), LD_LIBRARY_PATH=libraries).good("put", "a", "text", "read", "a", "") == b"text"
    told = Probe("s3://bucket", LD_LIBRARY_PATH=libraries, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b").error("read", "a", "")
    assert "libcurl.so.4 cannot be opened" in told and "install libcurl4" in told, told


def test_sources(server, key, secret, folder):
    """The same read, with credentials from each place that is no environment variable."""
    def reads(**variables):
        return Probe(f"s3://{BUCKET}/runs/a b", S3_ENDPOINT_URL=server.url, **variables)

    home = folder / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws/credentials").write_text(f"# keys\n[default]\naws_access_key_id = {key}\naws_secret_access_key={secret}\n")
    (home / ".aws/config").write_text(
        "[default]\nregion = us-east-1\ns3 =\n  max_concurrent_requests = 10\n"
        f"[profile made]\ncredential_process = printf '{{\"Version\":1,\"AccessKeyId\":\"{key}\",\"SecretAccessKey\":\"{secret}\"}}'\n"
        "[profile broken]\ncredential_process = sh -c 'echo not json; exit 0'\n[profile failing]\ncredential_process = exit 3\n"
        "[profile sso]\nsso_session = x\n")
    assert reads(HOME=str(home)).good("read", "sp ace", "") == b"text of sp ace"
    assert reads(HOME=str(home), AWS_PROFILE="made").good("read", "sp ace", "") == b"text of sp ace"
    assert "credential_process" in reads(HOME=str(home), AWS_PROFILE="broken").error("read", "sp ace", "")
    assert "status 3" in reads(HOME=str(home), AWS_PROFILE="failing").error("read", "sp ace", "")
    assert "sso_session" in reads(HOME=str(home), AWS_PROFILE="sso").error("read", "sp ace", "")
    assert "AWS_PROFILE: found other" in reads(HOME=str(home), AWS_PROFILE="other").error("read", "sp ace", "")
    told = reads().error("read", "sp ace", "")
    assert "denied" in told and "no credentials were found" in told, told
    for url in ("http://example.org/x", "http://10.0.0.1/x"):
        assert "https or a host of this machine" in reads(AWS_CONTAINER_CREDENTIALS_FULL_URI=url).error("read", "sp ace", "")


def test_services(folder):
    """Roles: of an instance (IMDSv2) and of a pod (STS)."""
    with MotoServer() as server:
        s3 = server.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="x", Body=b"by role")
        s3.put_object(Bucket=BUCKET, Key="open", Body=b"for all", ACL="public-read")
        instance = Probe(f"s3://{BUCKET}", S3_ENDPOINT_URL=server.url, AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=server.url)
        assert instance.good("read", "x", "") == b"by role"
        token = folder / "token"
        token.write_text("web-identity-token-that-is-secret\n")
        pod = Probe(f"s3://{BUCKET}", S3_ENDPOINT_URL=server.url, AWS_ENDPOINT_URL_STS=server.url, AWS_WEB_IDENTITY_TOKEN_FILE=str(token),
                    AWS_ROLE_ARN="arn:aws:iam::123456789012:role/trainer")
        assert pod.good("read", "x", "") == b"by role"
        assert "AWS_ROLE_ARN" in Probe(f"s3://{BUCKET}", S3_ENDPOINT_URL=server.url, AWS_WEB_IDENTITY_TOKEN_FILE=str(token)).error("read", "x", "")
        open_to_all = Probe(f"s3://{BUCKET}", S3_ENDPOINT_URL=server.url)
        assert open_to_all.good("read", "open", "") == b"for all"
        assert "no credentials were found" in open_to_all.error("read", "x", "")


def main():
    for name in list(os.environ):
        if name.startswith("AWS_") or name == "S3_ENDPOINT_URL":
            del os.environ[name]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with MotoServer(enforced=True) as server:
            key, secret = server.make_user(BUCKET)
            (folder / "files").mkdir()
            test_files(server, key, secret, folder / "files")
            test_refusals(server, key, secret, folder)
            test_sources(server, key, secret, folder)
        test_services(folder)
        test_without_libcurl(folder)
        told = b"".join(Probe.told)
        for secret_text in (secret, "wrong/secret+of40characters", "web-identity-token-that-is-secret", "Signature=", "X-Amz-Signature"):
            assert secret_text.encode() not in told, "a secret is told"
    print("the storage client and moto agree")


if __name__ == "__main__":
    sys.exit(main())
