package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

func redactor(t testing.TB, c Config) *Redactor {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check redacts text and compares; want is text where nothing is to go.
func check(t *testing.T, r *Redactor, text, want string) {
	t.Helper()
	got, redacted := r.Redact([]byte(text))
	if string(got) != want || redacted != (text != want) {
		t.Errorf("%s\n became %s\n   want %s", text, got, want)
	}
	if again, redacted := r.Redact(got); redacted {
		t.Errorf("%s\n was redacted again to %s", got, again)
	}
	if looksLikeJSON([]byte(text)) && !json.Valid(got) {
		t.Errorf("%s\n is no JSON any more: %s", text, got)
	}
}

func TestEmail(t *testing.T) {
	r := redactor(t, Config{})
	f := func(text, want string) { t.Helper(); check(t, r, text, want) }
	f("write to ann.lee+news@mail.example.co.uk.", "write to [redacted:email].")
	f("<a_b%c@x-y.org>,b@c.io", "<[redacted:email]>,[redacted:email]")
	f("邮箱：12345678@qq.com，谢谢", "邮箱：[redacted:email]，谢谢")
	f("我的邮箱是zhang@163.com。", "我的邮箱是[redacted:email]。")
	f("mail 13812345678@139.com now", "mail [redacted:email] now")
	f("a@b.xn--p1ai x", "[redacted:email] x")
	f("mailto:ann@example.com?subject=hi", "mailto:[redacted:email]?subject=hi")
	f("postgres://admin:hunter2@db.internal.example.com:5432/x", "postgres://[redacted:url_credentials]@db.internal.example.com:5432/x")
	f("https://u:p%40ss@host/path", "https://[redacted:url_credentials]@host/path")
	f("ann@startup.agency, bob@example.com(work) li@corp.com.cn（工作）", "[redacted:email], [redacted:email](work) [redacted:email]（工作）")
	f(`line\nann@example.com\tnext`, `line\n[redacted:email]\tnext`)
	f(`\\nann@example.com`, `\\n[redacted:email]`)
	for _, text := range []string{
		"user@localhost", "@dataclass @app.route('/x')", "react@18.2.0 and lodash@4.17.21-beta", "icon@2x.png",
		"git@github.com:org/repo.git", "image@sha256:0d17b565c37bcbd895e9d92315a05c1c3c9a29f762b011a10c54a66cd53c9b31",
		"a@b", "@", "x@.com", "x@-a.com", ".@a", "a @ b.com", "pkg@1.0.0.rc", "https://host/@user/page", "ssh://git@host/x",
		"foo@", strings.Repeat("a", 65) + "@example.com", "5 @ 3.50 each", "http://host:8080/a@b",
	} {
		f(text, text)
	}
}

func TestPhone(t *testing.T) {
	r := redactor(t, Config{})
	f := func(text, want string) { t.Helper(); check(t, r, text, want) }
	f("电话13812345678，微信同号", "电话[redacted:phone]，微信同号")
	f("手机：138-1234-5678", "手机：[redacted:phone]")
	f("call 138 1234 5678 2 times", "call [redacted:phone] 2 times")
	f("(+86)13912345678", "([redacted:phone]")
	f("+86 139 1234 5678, +8613912345678; 8613912345678 008613912345678", "[redacted:phone], [redacted:phone]; [redacted:phone] [redacted:phone]")
	f("86 13912345678 / 86-139-1234-5678", "[redacted:phone] / [redacted:phone]")
	f("phone=17179869184", "phone=[redacted:phone]")
	f("tel: 19912345678.", "tel: [redacted:phone].")
	f("订单已发货，请联系13812345678", "订单已发货，请联系[redacted:phone]")
	f("我的手机号是13812345678，订单号13912345678", "我的手机号是[redacted:phone]，订单号13912345678")
	f("电话1:13812345678 电话2：13912345678", "电话1:[redacted:phone] 电话2：[redacted:phone]")
	f("call 13812345678, 15912345678", "call [redacted:phone], [redacted:phone]")
	f("phones: [13812345678, 15912345678]", "phones: [[redacted:phone], [redacted:phone]]")
	f("张三,13812345678,2026", "张三,[redacted:phone],2026")
	f("+1 415 555 2671 and +1-415-555-2671 and +14155552671 and +1 (415) 555-2671", "[redacted:phone] and [redacted:phone] and [redacted:phone] and [redacted:phone]")
	f("(415) 555-2671, 415-555-2671", "[redacted:phone], [redacted:phone]")
	f("+44 20 7946 0958", "[redacted:phone]")
	f("+442079460958 +33 1 23 45 67 89 +49-30-901820 +852 2345 6789 +971501234567", "[redacted:phone] [redacted:phone] [redacted:phone] [redacted:phone] [redacted:phone]")
	f("+1 415 555 2671 2026", "[redacted:phone] 2026")
	f(`\u7535\u8bdd13812345678`, `\u7535\u8bdd[redacted:phone]`)
	f(`\n13812345678\n`, `\n[redacted:phone]\n`)
	for _, text := range []string{
		"17179869184 bytes", "gpu_memory_bytes 17179869184", "mem=17234567890", "gpu_memory_bytes{gpu=\"0\"} 17234567890",
		"17179869184", "13800000000", "12012345678", "138123456789", "1381234567", "x13812345678", "13812345678x",
		"1764538800 1764538800123 1764538800123456 1764538800123456789", "0.13812345678", "13812345678.5", "1.13812345678",
		"duration_ns=15912345678", "offset 3, 13812345678 rows", "$13812345678", "trace_id: 13812345678", "telemetry_bytes=17234567890", "cancelled_count: 17234567890", "hotel_bytes: 17234567890",
		"+100 200 300", "+1000000000", "3+1234567890", "+0800", "2026-11-30T12:00:00+0800", "x = +12345678 y", "+12345678.25",
		"192.168.100.200", "10.0.0.1:13812", "123-456-7890", "1-2-3", "f(415) 555-2671", "(415) 155-2671", "(41) 555-2671",
		"+999 123 456 789", "+210 1234567", "+", "++14155552671", "req-a7-13812345678",
	} {
		f(text, text)
	}
}

func TestCard(t *testing.T) {
	r := redactor(t, Config{})
	f := func(text, want string) { t.Helper(); check(t, r, text, want) }
	f("4111111111111111", "[redacted:card]")
	f("pay with 4111 1111 1111 1111 please", "pay with [redacted:card] please")
	f("4111-1111-1111-1111.", "[redacted:card].")
	f("5555555555554444 2223003122003222 378282246310005 6011111111111117 3530111333300000", "[redacted:card] [redacted:card] [redacted:card] [redacted:card] [redacted:card]")
	f("3782 822463 10005 or 3056 930902 5904", "[redacted:card] or [redacted:card]")
	f("银行卡号6222021234567890128", "银行卡号[redacted:card]")
	f("card: 6222 0212 3456 7890 128", "card: [redacted:card]")
	for _, text := range []string{
		"4111111111111112", "411111111111111", "41111111111111111", "30569309025904", "0.4111111111111111", "14111111111111111",
		"4111111111111111.5", "1 4111 1111 1111 1111", "4111 1111 1111 1111 1111", "4111,1111,1111,1111",
		"order_id=4111111111111111", "span: 4111111111111111", "4111111111111111 bytes", "a4111111111111111", "4111111111111111f",
		"4539578763621486-8a7b", "1234567890123456", "9999999999999995", "1764538800123456",
	} {
		f(text, text)
	}
}

func TestIdentity(t *testing.T) {
	r := redactor(t, Config{})
	f := func(text, want string) { t.Helper(); check(t, r, text, want) }
	f("身份证11010519491231002X。", "身份证[redacted:cn_id]。")
	f("id 11010519491231002x, 440524188001010014", "id [redacted:cn_id], 440524188001010014") // born in 1880
	f("id=110105194912310012?", "id=110105194912310012?")                                     // wrong check digit
	f("440308199901101512", "[redacted:cn_id]")
	f("ssn 078-05-1120", "ssn [redacted:us_ssn]")
	f("SSN: 078051120", "SSN: [redacted:us_ssn]")
	for _, text := range []string{
		"078051120", "000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "123-45-0000", "123-45-67890", "1123-45-6789",
		"123 45 6789", "11010519491331002X", "01010519491231002X", "11010519491231002XY", "a11010519491231002X",
		"2026-11-30", "2026-11-3012", "123-45-6789-0", "9-123-45-6789",
	} {
		f(text, text)
	}
}

// Ordinary text of logs, prompts and code stays as it is.
func TestOrdinary(t *testing.T) {
	r := redactor(t, Config{})
	for _, text := range []string{
		"", " ", "\x00\xff\xfe", "Hello, world! 你好，世界。",
		"2026-11-30T12:00:00.123456789Z INFO 200 OK in 12.5ms", "2026/11/30 12:00:00 +0800 CST m=+0.012345678",
		"20261130120000123", "20261130-120000-123456", "[30/Nov/2026:12:00:00 +0000] \"GET /v1/chat HTTP/1.1\" 200 5124",
		"550e8400-e29b-41d4-a716-446655440000", "12345678-1234-1234-1234-123456789012", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
		"urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7", "d41d8cd98f00b204e9800998ecf8427e",
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
		"commit 5a3984a, go1.26.7, v0.165.0-rc.1+build.20261130", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "cgroup 0::/system.slice/x@1.service",
		"0x7f3a1c000000 0xDEADBEEF", "3.141592653589793 2.718281828459045e+10 -1.4539578763621486e-05", "[0.4111111111111111, -0.5555555555554444]",
		"[1024, 4096, 50257]", "shape=(1, 4096, 128) dtype=float16", "loss 4539 5787 6362", "1,234,567,890.12",
		"10.0.0.1 fe80::1ff:fe23:4567:890a 127.0.0.1:4318", "00:1B:44:11:3A:B7", "ISBN 978-3-16-148410-0", "EAN 4006381333931",
		"max_tokens=4096 prompt_tokens: 128 token: hello tokens: 12", "password: required", "The password is wrong", "secret: string", "password=",
		"sk-learn-based-classifier-with-names", "sk-", "task-force-one-two-three-four-five", "ghp_short", "bearer of bad news", "Bearer token", "Basic authentication",
		"eyJ is base64 for {\"", "AKIA is a prefix", "AKIAshort", "risk-assessment-2026-11-30-final-version", "disk-0123456789abcdef0123",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----",
		"api_key: str = Field(...)", "api_key=os.environ[\"KEY\"]", "password=${DB_PASSWORD}", "password: <hidden>", "secret={{ .Values.secret }}",
		"key=value&other=thing", "http://host/path?x=1&y=2", `C:\new\table\user`, `\d{11}\s+[a-z]+`, "a := b + c; if x == y {", "====", "::::",
		"量化参数 7000000000 个，序列长度 32768", "时间戳1764538800123", "model=Qwen2.5-7B-Instruct-AWQ", "nodes 13-16, 4-4-4-4", "cuda:0 12.4 535.104.05",
		"attn = q@k.transpose(-2, -1) / d", "y = x@self.weight + b; z = x@w.T", "h@proj.weight, grad@layer.to(device)",
		"Started getty@tty1.service and vllm@qwen.service", "worker@gpu0.log rotated, epoch@best.ckpt kept",
		`docker run -v "$PWD":/app -v $PWD:/workdir x`, `{"PWD":"/home/node/project","OLDPWD":"/home/node"}`, "PWD=/workspace/model USER=root", `pwd: "C:\\models"`,
		`{"encryptionKey":"arn:aws:kms:us-west-2:123456789012:alias/aws/s3"}`, "arn:aws:secretsmanager:us-west-2:123456789012:secret:MySecret1-a1b2c3",
		"client-secret:/etc/vmagent/oauth2-client-secret", "password=file:///run/secrets/db or password=https://host/path", "secret: my-app-secret-v2 not found",
		"def f(password: Optional[str] = None, secret: ed25519.Ed25519PrivateKey)", "connect(password=self.password, key_password=config.key_password)",
		"user, password = auth[0], auth[1]", "self.key_password = key_password", "password=password, api_key=settings.s3_secret_access_key", "class User:\n    password: SecretStr",
		`{"AWS::IAM::AccessKey":"72c2d9dd90025459"}`, `{"AWS::IAM::AccessKey":"72c2d9dd90025459",`, "cipher chacha20-poly1305@openssh.com",
		"x = -16630256576 + 13478400000*y", "subs({x: 0}) == -16630256576",
		`1 MiB of "password=" took 1m7.4s`, "64.99:18175433808,144.99:23835948524", "latencies_ns=[13812345678, 15912345678]", "sizes: [17234567890]",
		"订单号：13812345678，流水号 15912345678", "订单编号13812345678已发货", "显存占用17234567890，耗时15912345678", "批次号：4539578763621486", "密码不能为空，密码：错误", "密码错误：请重试",
		"步骤3：模型加载完成，用时12.5秒，参数量7241732096", "INFO 11-30 12:00:00 metrics.py:455] Avg prompt throughput: 1234.5 tokens/s, Running: 12 reqs",
		"SamplingParams(n=1, temperature=0.7, seed=13812345678, stop_token_ids=[151643, 151645], max_tokens=512)", "api_key='EMPTY'",
		"e-1f3c1e4c-0000-4d5c-9d0b-1c2d3e4f5a6b", "kafka offset 18446744073709551615", "9223372036854775807", "id 1234567890123456789",
	} {
		check(t, r, text, text)
	}
}

func TestSecrets(t *testing.T) {
	r := redactor(t, Config{})
	f := func(text, want string) { t.Helper(); check(t, r, text, want) }
	random := "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	f("key sk-"+random+".", "key [redacted:api_key].")
	f("sk-proj-"+random+"_x-"+random, "[redacted:api_key]")
	f("sk-ant-api03-"+random, "[redacted:api_key]")
	f("id AKIAIOSFODNN7EXAMPLE;", "id [redacted:api_key];")
	f("ghp_"+random+" github_pat_11ABCDEFG0123456789_abcdefghij", "[redacted:api_key] [redacted:api_key]")
	f("AIzaSyA1234567890abcdefghijklmnopqrstuv", "[redacted:api_key]")
	f("hf_"+random+" sk_live_"+random, "[redacted:api_key] [redacted:api_key]")
	f("xoxb-123456789012-abcdefGHIJKL1234567890", "[redacted:api_key]")
	f("Authorization: Bearer "+random, "Authorization: Bearer [redacted:token]")
	f("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [redacted:token]")
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	f("token "+jwt+", done", "token [redacted:token], done")
	f("Bearer "+jwt, "Bearer [redacted:token]")
	f("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1", "aws_secret_access_key = [redacted:api_key]")
	f("OPENAI_API_KEY=abcd1234efgh\nx", "OPENAI_API_KEY=[redacted:api_key]\nx")
	f("password=hunter and pwd: s3cret!", "password=[redacted:password] and pwd: [redacted:password]!")
	f(`{'password': 'hunter2'}`, `{'password': '[redacted:password]'}`)
	f("密码：abc12345，请保密", "密码：[redacted:password]，请保密")
	f("PASSWORD=/5wordStart db_pwd=/x9y8 secret: x9y8-z7w6a5b4", "PASSWORD=[redacted:password] db_pwd=[redacted:password] secret: [redacted:api_key]")
	f("aws_secret_access_key: /8PSQvWIuLnKhh8d/jpw0nNmQRBZvNEXAMPLEKEY", "aws_secret_access_key: [redacted:api_key]")
	f("password=s3cret[1x DB_PASSWORD=my.pass-word db_password = super_secret", "password=[redacted:password] DB_PASSWORD=[redacted:password] db_password = [redacted:password]")
	f("//registry.example.com/:_authToken=MYTOKEN123", "//registry.example.com/:_authToken=[redacted:api_key]")
	f("client_secret=\"x9y8z7w6\"", "client_secret=\"[redacted:api_key]\"")
	f("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA+/=\n-----END RSA PRIVATE KEY-----\nrest", "[redacted:private_key]\nrest")
	f(`-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nrest`, `[redacted:private_key]\nrest`)
	f("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA", "[redacted:private_key]")
	f("-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOY\n-----END PGP PRIVATE KEY BLOCK-----", "[redacted:private_key]")
}

func TestJSON(t *testing.T) {
	r := redactor(t, Config{Rules: []Rule{{Name: "staff", Pattern: `\bE\d{6}\b`}}})
	f := func(text, want string) { t.Helper(); check(t, r, text, want) }
	f(`{"m":[{"role":"user","content":"I am ann@example.com"}]}`, `{"m":[{"role":"user","content":"I am [redacted:email]"}]}`)
	f(`{"a":"x\nann@example.com\t\"q\""}`, `{"a":"x\n[redacted:email]\t\"q\""}`)
	f(`{"a":"ann\u0040example.com"}`, `{"a":"[redacted:email]"}`)
	f(`{"a":"\u7535\u8bdd13812345678"}`, `{"a":"电话[redacted:phone]"}`)
	f(`{"a":"{\"b\":\"tel 13812345678\",\"n\":1}"}`, `{"a":"{\"b\":\"tel [redacted:phone]\",\"n\":1}"}`)
	f(`{"a":"{\"b\":\"{\\\"password\\\":\\\"hunter2\\\"}\"}"}`, `{"a":"{\"b\":\"{\\\"password\\\":\\\"[redacted:password]\\\"}\"}"}`)
	f(`{"phone":13812345678,"id":13812345678,"bytes":17179869184}`, `{"phone":"[redacted:phone]","id":13812345678,"bytes":17179869184}`)
	f(`{"card_number" : 4111111111111111 , "n":4111111111111111}`, `{"card_number" : "[redacted:card]" , "n":4111111111111111}`)
	f(`{"x":[1,440308199901101512]}`, `{"x":[1,"[redacted:cn_id]"]}`)
	f(`{"password":"correct horse","api_key":"letters","token":"hello","max_tokens":10}`, `{"password":"[redacted:password]","api_key":"[redacted:api_key]","token":"hello","max_tokens":10}`)
	f(`{"password":null,"passwd":"","pwd":{"x":1}}`, `{"password":null,"passwd":"","pwd":{"x":1}}`)
	f(`{"ann@example.com":1}`, `{"[redacted:email]":1}`)
	f(`["E123456","E12345"]`, `["[redacted:staff]","E12345"]`)
	f(`"ann@example.com"`, `"[redacted:email]"`)
	f(` [ "a" , 1.5e3 , -4 , true , null ] `, ` [ "a" , 1.5e3 , -4 , true , null ] `)
	f(`{"key":"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"}`, `{"key":"[redacted:private_key]\n"}`)
	f(`{"trace_id":"4111111111111111","time_unix_nano":"1764538800123456789"}`, `{"trace_id":"4111111111111111","time_unix_nano":"1764538800123456789"}`)
	// What is no JSON as a whole is still not torn within its strings.
	f("prefix {\"a\":\"x\\nann@example.com\"}\n{\"b\":\"\\u8bdd13812345678\"}", "prefix {\"a\":\"x\\n[redacted:email]\"}\n{\"b\":\"\\u8bdd[redacted:phone]\"}")
	f(`{"a":"ann@example.com","cut":"of`, `{"a":"[redacted:email]","cut":"of`)
}

func TestOff(t *testing.T) {
	r := redactor(t, Config{Off: []string{Email, Password}})
	check(t, r, "ann@example.com password=hunter2 13812345678", "ann@example.com password=hunter2 [redacted:phone]")
	check(t, r, `{"password":"hunter2"}`, `{"password":"hunter2"}`)
}

func TestUserRules(t *testing.T) {
	c, err := ParseConfig([]byte(`
off: [us_ssn]
rules:
  - name: staff
    pattern: 'E\d{6}'
    contains: E
  - name: project
    pattern: '(?i)project [a-z]+'
    replacement: '<project>'
`))
	if err != nil {
		t.Fatal(err)
	}
	r := redactor(t, c)
	f := func(text, want string) { t.Helper(); check(t, r, text, want) }
	f("E123456 works on Project Apollo, 078-05-1120", "[redacted:staff] works on <project>, 078-05-1120")
	f("E123456@example.com", "[redacted:email]") // what overlaps is one
	f("project ann@example.com", "<project>")
	f("nothing to see", "nothing to see")

	bad := func(text, want string) {
		t.Helper()
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	bad("off: [nope]", "built-in rules are")
	bad("rules: [{name: Bad Name, pattern: x}]", "lower-case")
	bad("rules: [{name: email, pattern: x}]", "twice")
	bad("rules: [{name: a, pattern: '('}]", "missing closing")
	bad("rules: [{name: a, pattern: ''}]", "bytes")
	bad("rules: [{name: a, pattern: x, replacement: 'a\"b'}]", "without quotes")
	bad("rules: [{name: a, pattern: x, replace: y}]", "replace")
}
