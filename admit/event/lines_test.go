package event

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"inquest/admit/event/eventtest"
)

func TestReadLines(t *testing.T) {
	f := func(in string, limit int, want string) {
		t.Helper()
		var got strings.Builder
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			got.Reset()
			if err := ReadLines(r, limit, func(l Line, why *Reason) error {
				fmt.Fprintf(&got, "%d@%d[%s]", l.Number, l.Offset, l.Text)
				if why != nil {
					fmt.Fprintf(&got, "%s/%d", why.Code, l.Size)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if got.String() != want {
				t.Errorf("%.40q: %s, want %s", in, got.String(), want)
			}
		}
	}
	f("", 0, "")
	f("\n\r\n \t\n", 0, "")
	f("{}", 0, "1@0[{}]")
	f("{}\n", 0, "1@0[{}]")
	f("{}\r\n{1}\r\n", 0, "1@0[{}]2@4[{1}]")
	f("\n{}\n\n{1}", 0, "2@1[{}]4@5[{1}]")
	f("\xef\xbb\xbf{}\n", 0, "1@0[{}]")
	f("{}\r", 0, "1@0[{}]")
	f("12345\n123\n", 4, "1@0[1234]size/52@6[123]")
	f("1234\r\n12345\r\n1\n", 4, "1@0[1234]2@6[1234]size/53@13[1]")
	f("12345", 4, "1@0[1234]size/5")
	f("     \n1\n", 4, "1@0[    ]size/52@6[1]")
	long := strings.Repeat("x", 300_000)
	f(long+"\n{}\n", 5, "1@0[xxxxx]size/3000002@300001[{}]")
	f("{}\n"+long+"\r\n{}", 0, "1@0[{}]2@3["+long+"]3@300005[{}]")
}

func TestReadLinesFails(t *testing.T) {
	broken := errors.New("connection reset")
	taken := 0
	err := ReadLines(io.MultiReader(strings.NewReader("{}\n{\"half\":"), iotest.ErrReader(broken)), 0, func(Line, *Reason) error {
		taken++
		return nil
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "line 2") || taken != 1 {
		t.Errorf("%v after %d lines", err, taken)
	}
	full := errors.New("disk full")
	if err := ReadLines(strings.NewReader("{}\n{}\n"), 0, func(Line, *Reason) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

func TestFromJSON(t *testing.T) {
	f := func(line, wantService, wantCode string) {
		t.Helper()
		lr, service, why := FromJSON([]byte(line))
		if wantCode != "" {
			if why == nil || why.Code != wantCode {
				t.Errorf("%s: %+v, want %s", line, why, wantCode)
			}
			return
		}
		if why != nil || service != wantService || lr.Body().Str() != strings.TrimSpace(line) {
			t.Errorf("%s: service %q, %+v", line, service, why)
		}
	}
	f(`{}`, "", "")
	f(` {"a":[1,{"service":"inner"},true,false,null,"\n"],"service":"chat-api"} `, "chat-api", "")
	f(`{"service":7}`, "", "")
	f(`{"serv\u0069ce":"x"}`, "x", "")
	f(`{"service":"a","service":"b"}`, "", CodeDuplicate)
	f(``, "", CodeJSON)
	f(`null`, "", CodeJSON)
	f(`[{}]`, "", CodeJSON)
	f(`{"a":1`, "", CodeJSON)
	f(`{"a":1} {"b":2}`, "", CodeJSON)
	f(`{"a":Infinity}`, "", CodeJSON)
	f(`{'a':1}`, "", CodeJSON)
	f(`{"a":1,}`, "", CodeJSON)
	f("{\"a\":\"\xc3\"}", "", CodeJSON)
	f(`{"a":1e400}`, "", CodeRange)
	f(strings.Repeat(`{"a":`, 64)+"1"+strings.Repeat("}", 64), "", CodeDepth)
}

func TestBatch(t *testing.T) {
	v, rng := newValidator(t), source()
	var text strings.Builder
	for i := range 20 {
		text.Write(eventtest.Good(rng, i).JSON())
		text.WriteString("\n")
		if i%10 == 0 {
			text.WriteString("{broken\n")
		}
	}
	b, refused := NewBatch(), 0
	if err := ReadLines(strings.NewReader(text.String()), 0, func(l Line, why *Reason) error {
		if why == nil {
			why = b.Add(l.Text)
		}
		if why != nil {
			refused++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ld := b.Logs()
	if ld.LogRecordCount() != 20 || refused != 2 || ld.ResourceLogs().Len() > 4 || b.Logs().LogRecordCount() != 0 {
		t.Errorf("%d records of %d services, %d refused", ld.LogRecordCount(), ld.ResourceLogs().Len(), refused)
	}
	for _, rl := range ld.ResourceLogs().All() {
		for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
			if why := v.Check(rl.Resource(), lr, received); why != nil {
				t.Error(*why)
			}
			if x, ok := lr.Attributes().Get("ai.service"); ok {
				t.Errorf("the service %s stands twice", x.Str())
			}
		}
	}
}
