package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Whatever the text, JSON stays JSON, the same text gives the same result, and
// what was redacted has nothing left to redact of the kinds that were found.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{
		"ann@example.com", `{"a":"x\nann@example.com\u0040\\","phone":13812345678}`, "+1 (415) 555-2671", "4111 1111 1111 1111",
		"https://u:p@h", "-----BEGIN PRIVATE KEY-----\\nx", "password: abc1", `{"a":"{\"password\":\"x\"}"}`, "11010519491231002X",
		"Bearer abcdefgh12345678", "\\\\\\n13812345678", "密码：ab12", "086-13812345678", "(+86)13912345678",
	} {
		f.Add([]byte(s))
	}
	r, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		out, redacted := r.Redact(text)
		if !bytes.Equal(text, before) {
			t.Fatal("the text was changed in place")
		}
		if !redacted && !bytes.Equal(out, text) {
			t.Fatalf("%q became %q unsaid", text, out)
		}
		if looksLikeJSON(text) && !json.Valid(out) {
			t.Fatalf("%q became %q, which is no JSON", text, out)
		}
		// Text cut out of JSON is put back into it unharmed.
		inJSON, err := json.Marshal(string(text))
		if err != nil {
			t.Fatal(err)
		}
		spans := r.scan(inJSON, "")
		if len(spans) > 0 && !bytes.ContainsAny(text, `"`) {
			if torn := replace(inJSON, spans); !json.Valid(torn) {
				t.Fatalf("%q became %q", inJSON, torn)
			}
		}
	})
}

// The time grows with the length, whatever the text is made of: what takes
// seconds here takes minutes where it grows with the square.
func TestLinear(t *testing.T) {
	r := redactor(t, Config{})
	const size = 1 << 20
	texts := map[string]string{
		"a key of many words": `{"` + strings.Repeat("a", size/2) + `":[` + strings.Repeat(`"b",1,`, size/12) + `0]}`,
		"tokens, cut off":     strings.Repeat("eyJ-", size/8) + "." + strings.Repeat("eyJ-", size/8),
		"a value of dots":     strings.Repeat("password=", size/18) + strings.Repeat(".", size/2),
	}
	for _, unit := range []string{
		"@", "a@", "a@a.", "1 ", "1-", "1", "+1 ", "+", "(", "-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "eyJ", "eyJa.", "eyJ-", "sk-", "sk-a1-",
		"=", ":", "a=", "password=", "apikey=", "\\", "\\u0041", "://a:", "://", "13812345678 ", "4111 ", "Bearer ", "bearer/", "a", "_", "138 1234 5678 ", "：", "a.",
		"密码：", "(415", "+1-", "1.", "SG.", "AKIA", `"`, "[", `{"a":`,
	} {
		texts[unit] = strings.Repeat(unit, size/len(unit))
	}
	for name, text := range texts {
		start := time.Now()
		r.Redact([]byte(text))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%d bytes of %q took %s", len(text), name, took)
		}
	}
}

func BenchmarkRedact(b *testing.B) {
	r := redactor(b, Config{})
	prose := strings.Repeat("Please summarise the attached meeting notes of 2026-11-30; 4 of 12 items are open, see ticket ABC-1234 (trace 4bf92f3577b34da6). ", 50)
	personal := strings.Repeat("My address is ann.lee@example.com, my phone 13812345678 and my card 4111 1111 1111 1111. ", 50)
	quoted, err := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": prose + "\n" + prose}}})
	if err != nil {
		b.Fatal(err)
	}
	plain, err := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": prose}}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		text []byte
	}{
		{"Prose", []byte(prose)},
		{"Chinese", []byte(strings.Repeat("请总结会议纪要，共有12项议题，其中4项未完成。", 100))},
		{"Personal", []byte(personal)},
		{"JSON", plain},
		{"JSONEscaped", quoted},
		{"Numbers", []byte(strings.Repeat("1024 0.123456 4096 1764538800123456789 ", 200))},
		{"Words", []byte(strings.Repeat("the quick brown fox jumps over the lazy dog ", 200))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				r.Redact(c.text)
			}
		})
	}
}
