"""Moto's server for tests: an object store that checks signatures, with a user of its own; and the probe that speaks to it."""

import os
import resource
import socket
import subprocess
import sys
import time
import urllib.request

import boto3

PROBE = os.environ["STORAGE_PROBE"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class MotoServer:
    """`enforced`: every request after the first four must be signed by a user that may do it."""

    def __init__(self, enforced=False):
        self.url = f"http://127.0.0.1:{free_port()}"
        environment = dict(os.environ, MOTO_S3_DEFAULT_MAX_KEYS="10")
        if enforced:
            environment["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"
        self.log = open(os.devnull, "wb")
        self.process = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", self.url.rsplit(":", 1)[1]],
                                        env=environment, stdout=self.log, stderr=self.log)
        for _ in range(600):
            try:
                urllib.request.urlopen(self.url + "/moto-api/data.json", timeout=1).read()
                break
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError("moto ended at its start")
                time.sleep(0.1)

    def client(self, service, key="root", secret="root"):
        return boto3.client(service, endpoint_url=self.url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret)

    def make_user(self, bucket):
        """Four calls, which the server lets pass unsigned; the user's key and secret."""
        iam = self.client("iam")
        iam.create_user(UserName="trainer")
        iam.put_user_policy(UserName="trainer", PolicyName="all",
                            PolicyDocument='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}')
        key = iam.create_access_key(UserName="trainer")["AccessKey"]
        self.client("s3").create_bucket(Bucket=bucket)
        return key["AccessKeyId"], key["SecretAccessKey"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        self.log.close()


class Probe:
    """The storage client as a user has it, with exactly these variables; all that it tells is kept."""

    told = []

    def __init__(self, address, **variables):
        self.address = address
        self.environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "AWS_EC2_METADATA_DISABLED": "true", **variables}
        for name in [name for name, value in self.environment.items() if value is None]:
            del self.environment[name]

    def start(self, *calls):
        return subprocess.Popen([PROBE, self.address, *map(str, calls)], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, *calls, timeout=120, file_bytes=None):
        """`file_bytes`: no file of it may become longer."""
        limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))) if file_bytes else None
        done = subprocess.run([PROBE, self.address, *map(str, calls)], env=self.environment, capture_output=True, timeout=timeout, preexec_fn=limit)
        Probe.told.append(done.stdout + done.stderr)
        return done

    def good(self, *calls):
        done = self.run(*calls)
        assert done.returncode == 0, (calls, done.stderr.decode())
        return done.stdout

    def error(self, *calls, **limits):
        done = self.run(*calls, **limits)
        assert done.returncode in (2, 4), (calls, done.returncode, done.stderr.decode())
        return done.stderr.decode()
