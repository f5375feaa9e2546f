package serverextension

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"inquest/admit"
	"inquest/alert"
	"inquest/recorder"
)

// Dead letters are counted by reason, and hooks tell what they do.
func TestMetrics(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer hook.Close()
	defer http.DefaultClient.CloseIdleConnections()
	alerts, err := alert.New(alert.Config{Hooks: []alert.Hook{{Name: "ops", Kind: alert.KindGeneric, URL: alert.Secret(hook.URL)}}}, alert.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := recorder.DefaultConfig()
	cfg.Dir, cfg.MinFreeBytes = t.TempDir(), 64<<20
	cfg.OnLetters = (&admission{alerts: alerts}).letters
	rec, err := recorder.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rec.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	reader := sdkmetric.NewManualReader()
	m, err := newMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), rec, alerts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		ld := plog.NewLogs()
		lr := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		lr.SetTimestamp(4_102_444_800_000_000_000) // the year 2100
		if i == 2 {
			lr.SetTimestamp(1)
		}
		ctx, _ := admit.WithReport(t.Context())
		if err := rec.Logs(ctx, ld); err != nil {
			t.Fatal(err)
		}
	}
	closing, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := alerts.Close(closing); err != nil {
		t.Error(err)
	}
	got := map[string]float64{}
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	for _, sm := range rm.ScopeMetrics {
		for _, mt := range sm.Metrics {
			switch d := mt.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					got[mt.Name+labels(p)] = float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					got[mt.Name+labels(p)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					got[mt.Name+labels(p)] = p.Value
				}
			}
		}
	}
	f := func(name string, want float64) {
		t.Helper()
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v, %v; want %v", name, v, ok, want)
		}
	}
	f("inquest_dead_letters{reason=time.late}", 2)
	f("inquest_dead_letters{reason=time.early}", 1)
	f("inquest_missing_payloads{}", 0)
	f("inquest_rejected{signal=logs}", 3)
	f("inquest_alert_events{hook=ops,kind=generic}", 3)
	f("inquest_alert_failures{hook=ops,kind=generic}", 0)
	f("inquest_alert_lost{hook=ops,kind=generic}", 0)
	f("inquest_alert_pending{hook=ops,kind=generic}", 0)
	if sent := got["inquest_alert_messages{hook=ops,kind=generic}"]; sent < 2 {
		t.Errorf("%v messages sent, want one a reason at least", sent)
	}
	if at := got["inquest_alert_last_sent{hook=ops,kind=generic}"]; time.Since(time.UnixMilli(int64(at*1e3))) > time.Minute {
		t.Errorf("the last message was sent at %v", at)
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Error(err)
	}
}

func labels[N int64 | float64](p metricdata.DataPoint[N]) string {
	var out []string
	for _, kv := range p.Attributes.ToSlice() {
		out = append(out, string(kv.Key)+"="+kv.Value.String())
	}
	return "{" + strings.Join(out, ",") + "}"
}
