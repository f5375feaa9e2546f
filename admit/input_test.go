package admit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit/event"
	"inquest/admit/event/eventtest"
	"inquest/schema"
)

// Whatever the way in, the raw input of an event is handed over and in no part of
// the record, nor in the request's bytes as they came.
func TestInputLeavesRecord(t *testing.T) {
	v, err := event.New(schema.AIEvent())
	if err != nil {
		t.Fatal(err)
	}
	const secret = "what Ann asked"
	sum := sha256.Sum256([]byte(secret))
	members := func() map[string]any {
		e := eventtest.Good(rand.New(rand.NewPCG(1, 1)), 1).Members
		e["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano)
		e["business"].(map[string]any)["input"] = secret
		e["business"].(map[string]any)["input_hash"] = hex.EncodeToString(sum[:])
		return e
	}
	f := func(name string, put func(lr plog.LogRecord)) {
		t.Helper()
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("service.name", "chat")
		put(rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
		rep := &Report{}
		rep.SetBody([]byte(secret))
		p := &Policy{Events: v}
		now := time.Now()
		kept, inputs := p.Logs(ld, Bounds{Earliest: now.Add(-time.Hour), Latest: now.Add(time.Hour)}, now.UnixNano(), rep)
		if kept != 1 || len(inputs) != 1 || inputs[0].Text != secret || inputs[0].Service != "chat" {
			t.Fatalf("%s: kept %d, inputs %+v, %s", name, kept, inputs, rep.Message())
		}
		data, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(secret)) || rep.Body() != nil {
			t.Errorf("%s: the record holds the input: %s", name, data)
		}
	}
	line, err := json.Marshal(members())
	if err != nil {
		t.Fatal(err)
	}
	f("JSON body", func(lr plog.LogRecord) { lr.Body().SetStr(string(line)) })
	f("spaced JSON body", func(lr plog.LogRecord) { lr.Body().SetStr(" \n" + string(line) + " ") })
	f("map body", func(lr plog.LogRecord) {
		var raw map[string]any
		if err := json.Unmarshal(line, &raw); err != nil {
			t.Fatal(err)
		}
		if err := lr.Body().SetEmptyMap().FromRaw(raw); err != nil {
			t.Fatal(err)
		}
	})
	f("attributes", func(lr plog.LogRecord) {
		var put func(prefix string, m map[string]any)
		put = func(prefix string, m map[string]any) {
			for name, value := range m {
				if inner, ok := value.(map[string]any); ok {
					put(prefix+name+".", inner)
					continue
				}
				if err := lr.Attributes().PutEmpty(prefix + name).FromRaw(value); err != nil {
					t.Fatal(err)
				}
			}
		}
		var raw map[string]any
		if err := json.Unmarshal(line, &raw); err != nil {
			t.Fatal(err)
		}
		put("ai.", raw)
	})
}
