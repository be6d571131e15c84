#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "trainer/storage/aws_profile.hpp"
#include "trainer/storage/retry.hpp"
#include "trainer/storage/s3_address.hpp"
#include "trainer/storage/s3_error.hpp"
#include "trainer/storage/s3_store.hpp"
#include "trainer/storage/sigv4.hpp"

using namespace wt;
using Catch::Contains;

namespace {

constexpr std::time_t kVectorTime = 1440938160;  // 2015-08-30T12:36:00Z
const AwsCredentials kVectorKeys{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

std::string signature_of(HttpRequest request, const AwsCredentials& keys, const SigningScope& scope,
                         const std::string& payload) {
  sign_request(request, keys, scope, payload, kVectorTime);
  const std::string value = request.headers.back().second;
  return value.substr(value.rfind('=') + 1);
}

/// Environment variables of one test case; as they were when it ends.
class Variables {
 public:
  ~Variables() {
    for (const auto& [name, value] : before_) value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    before_.emplace(name, environment_variable(name.c_str()));
    setenv(name.c_str(), value.c_str(), 1);
  }
  void unset(const std::string& name) {
    before_.emplace(name, environment_variable(name.c_str()));
    unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace

// The three signatures are those of botocore 1.44.8 (S3SigV4Auth) at that time.
TEST_CASE("a range of a file at a virtual host") {
  CHECK(signature_of(
            {.url = "https://bucket.s3.us-east-1.amazonaws.com/a%20b/c%2Bd.txt", .headers = {{"Range", "bytes=0-9"}}},
            kVectorKeys, {"us-east-1"},
            sha256_hex("")) == "5bf25405ead316a68daedadb84c59b3c1223a1908f5980c5f300581b2795241d");
}

TEST_CASE("a query without a value at an endpoint with a port") {
  const char* expected = "936bc9ea9c478ee3bb1dff9355e31981f63a7d4ab919d6ecd7fa0f9a07197bcc";
  for (const char* url : {"http://127.0.0.1:9000/bucket/key?uploads=", "http://127.0.0.1:9000/bucket/key?uploads"})
    CHECK(signature_of({.method = "POST", .url = url}, kVectorKeys, {"us-east-1"}, sha256_hex("")) == expected);
}

TEST_CASE("a part with a token, a header with spaces and a query in any order") {
  AwsCredentials temporary = kVectorKeys;
  temporary.session_token = "the/token+";
  for (const char* query : {"partNumber=2&uploadId=x%2Fy", "uploadId=x%2Fy&partNumber=2"})
    CHECK(signature_of({.method = "PUT",
                        .url = std::string("http://127.0.0.1:9000/bucket/key?") + query,
                        .headers = {{"If-Match", "\"e  tag\""}}},
                       temporary, {"eu-west-1"},
                       sha256_hex("part")) == "8c600ff689593a7a616a8306d8e1684d7c27c52eb8148efd9dea2ac553283735");
}

TEST_CASE("hashes are the published ones") {
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2, B.1
  CHECK(md5_hex("abc") == "900150983cd24fb0d6963f7d28e17f72");                                     // RFC 1321, A.5
  std::string hex;
  for (const unsigned char c : hmac_sha256("Jefe", "what do ya want for nothing?")) hex += fmt::format("{:02x}", c);
  CHECK(hex == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");  // RFC 4231, 4.3
}

TEST_CASE("the time of a signature is UTC") { CHECK(amz_date(kVectorTime) == "20150830T123600Z"); }

TEST_CASE("an ETag of parts is the MD5 of their MD5s") {
  // md5(md5("a") + md5("b")), by Python's hashlib
  CHECK(etag_of_parts({"\"0cc175b9c0f1b6a831c399e269772661\"", "\"92eb5ffee6ae2fec3ad71c777531578f\""}) ==
        "\"96e024ba2074fe77e8e965ba43a704be-2\"");
  CHECK(etag_of_parts({"\"0cc175b9c0f1b6a831c399e269772661\"", "\"not an md5\""}).empty());
}

TEST_CASE("parts are eight MiB, or so large that ten thousand hold the file") {
  CHECK(S3Store::part_bytes(1) == 8 << 20);
  CHECK(S3Store::part_bytes(83886080000) == 8 << 20);
  CHECK(S3Store::part_bytes(83886080001) == 9 << 20);
  for (const std::uint64_t bytes : {std::uint64_t{1} << 38, S3Store::kMost_bytes}) {
    const std::uint64_t part = S3Store::part_bytes(bytes);
    CHECK((bytes + part - 1) / part <= 10000);
    CHECK(part <= 5ull << 30);
  }
}

TEST_CASE("queries are sorted and encoded as RFC 3986 says") {
  CHECK(encoded_query({{"uploads", ""}, {"prefix", "a b/c+d=~"}}) == "prefix=a%20b%2Fc%2Bd%3D~&uploads=");
  CHECK(percent_encoded("a/b c\xc3\xa4", true) == "a/b%20c%C3%A4");
  CHECK(url_host("https://user:secret@host:1/x?y@z") == "host:1");
}

TEST_CASE("an address names a bucket and a prefix") {
  const S3Address address = parse_s3_address("s3://bucket/a/b/");
  CHECK(address.bucket == "bucket");
  CHECK(address.prefix == "a/b");
  CHECK(address.key("c") == "a/b/c");
  CHECK(parse_s3_address("s3://bucket").key("c") == "c");
  for (const char* wrong :
       {"s3://", "s3:///x", "s3://b", "s3://bu cket/x", "s3://bucket/../x", "s3://bucket//x", "bucket"})
    CHECK_THROWS_AS(parse_s3_address(wrong), Error);
}

TEST_CASE("an endpoint is that of the environment, else Amazon's") {
  Variables variables;
  variables.set("HOME", "/nowhere");
  for (const char* name :
       {"S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_DEFAULT_REGION"})
    variables.unset(name);
  variables.set("AWS_REGION", "eu-west-1");
  CHECK(s3_endpoint("bucket").url == "https://bucket.s3.eu-west-1.amazonaws.com");
  CHECK(s3_endpoint("with.dots").url == "https://s3.eu-west-1.amazonaws.com/with.dots");
  variables.set("AWS_ENDPOINT_URL", "http://third/");
  CHECK(s3_endpoint("bucket").url == "http://third/bucket");
  variables.set("AWS_ENDPOINT_URL_S3", "http://second");
  CHECK(s3_endpoint("bucket").url == "http://second/bucket");
  variables.set("S3_ENDPOINT_URL", "https://first:9000");
  CHECK(s3_endpoint("bucket").url == "https://first:9000/bucket");
  CHECK_FALSE(s3_endpoint("bucket").aws);
  for (const char* wrong : {"first:9000", "https://", "https://user:secret@host", "ftp://x", "https://x?y"}) {
    variables.set("S3_ENDPOINT_URL", wrong);
    const std::string told = test::usage_error([] { s3_endpoint("bucket"); });
    CHECK_THAT(told, Contains("needs http(s)://"));
    CHECK_THAT(told, !Contains("secret"));
  }
}

TEST_CASE("a profile is read from both files of the user") {
  const test::TempDirectory folder;
  Variables variables;
  variables.set("AWS_SHARED_CREDENTIALS_FILE", folder / "credentials");
  variables.set("AWS_CONFIG_FILE", folder / "config");
  variables.unset("AWS_PROFILE");
  CHECK(aws_profile().empty());
  test::write_bytes(folder / "credentials", "[default]\naws_access_key_id = A\n[other]\naws_access_key_id=B\n");
  test::write_bytes(folder / "config",
                    "[default]\nregion=here\n[profile other]\ns3 =\n  region = nested\nregion = there\n");
  CHECK(aws_profile() == std::map<std::string, std::string>{{"aws_access_key_id", "A"}, {"region", "here"}});
  variables.set("AWS_PROFILE", "other");
  CHECK(aws_profile().at("aws_access_key_id") == "B");
  CHECK(aws_profile().at("region") == "there");
  variables.set("AWS_PROFILE", "third");
  CHECK_THAT(test::usage_error(aws_profile), Contains("AWS_PROFILE: found third"));
  test::write_bytes(folder / "credentials", "[default]\nmy-secret-without-a-key\n");
  const std::string told = test::usage_error(aws_profile);
  CHECK_THAT(told, Contains("line 2") && !Contains("my-secret"));
}

TEST_CASE("an error of the store says what to do and tells no secret") {
  const S3Endpoint endpoint{"https://bucket.s3.us-east-1.amazonaws.com", "us-east-1", true};
  const AwsCredentials signer{"AKID", "the-secret-key", "the-session-token"};
  HttpResponse response{.status = 403};
  response.body =
      "<Error><Code>Strange the-secret-key</Code><Message>got the-session-token and the-secret-key</Message></Error>";
  for (const int status : {400, 403, 409}) {
    response.status = status;
    const std::string told = s3_failure("GET s3://bucket/x", s3_error_of(response), endpoint, signer).what();
    CHECK_THAT(told, !Contains("the-secret-key") && !Contains("the-session-token"));
    CHECK_THAT(told, Contains("GET s3://bucket/x") && Contains("Strange"));
  }
  response = {.status = 301, .headers = {{"x-amz-bucket-region", "eu-west-1"}}};
  CHECK_THAT(s3_failure("GET", s3_error_of(response), endpoint, signer).what(), Contains("set AWS_REGION=eu-west-1"));
}

TEST_CASE("what may succeed later is asked for again, and nothing else") {
  for (const int status : {429, 500, 502, 503, 504}) CHECK(s3_error_of({.status = status}).transient);
  for (const int status : {301, 400, 403, 404, 409, 412, 416, 501})
    CHECK_FALSE(s3_error_of({.status = status}).transient);
  for (const char* code : {"SlowDown", "RequestTimeout", "InternalError", "XAmzContentSHA256Mismatch"})
    CHECK(s3_error_of({.status = 400, .body = fmt::format("<Error><Code>{}</Code></Error>", code)}).transient);
  for (const char* body : {"", "<", "<Error>", "<a/>", "{}", "<Error><Code>AccessDenied</Code></Error>"})
    CHECK_FALSE(s3_error_of({.status = 403, .body = body}).transient);
}

TEST_CASE("a process that fails too often does not ask again") {
  RetryBudget budget;
  int taken = 0;
  while (taken < 1000 && budget.take()) ++taken;
  CHECK(taken == RetryBudget::kCapacity / RetryBudget::kCost);
  for (int i = 0; i < RetryBudget::kCost; ++i) budget.success();
  CHECK(budget.take());
  CHECK_FALSE(budget.take());
}
