package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"inquest/api/apitype"
	"inquest/store"
)

func testInvestigation() Investigation {
	return Investigation{
		ID: "inq-1", State: apitype.StateConfirmed, Created: testNow, From: testNow.Add(-time.Hour), To: testNow,
		Symptom: "slow", Cause: "cart: CPU throttled", Verdict: json.RawMessage(`{"state":"confirmed"}`),
	}
}

func TestInvestigate(t *testing.T) {
	by := &fakeInvestigator{inv: testInvestigation()}
	h := newTestHandler(t, Config{Investigator: by})
	f := func(header map[string]string, body string, code int, want string) {
		t.Helper()
		w := askChecked(t, h, code, "POST", "/api/v1/investigations", header, body)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.100s answers %s, want %s", body, w.Body, want)
		}
	}
	f(jsonHeader, `{"from":"2026-01-02T14:00:00Z","to":"1767366245","symptom":"slow","service":"web","operation":"GET /","metric":"up"}`, 201, `"verdict":{"state":"confirmed"}`)
	want := InvestigationRequest{From: time.Date(2026, 1, 2, 14, 0, 0, 0, time.UTC), To: testNow, Symptom: "slow", Service: "web", Operation: "GET /", Metric: "up"}
	if !reflect.DeepEqual(by.last, want) {
		t.Errorf("asked %+v, want %+v", by.last, want)
	}
	f(jsonHeader, `{"from":"2026-01-02T14:00:00Z","to":"1767366245","onset":"2026-01-02T14:10:00Z","baseline":[{"from":"2026-01-01T14:00:00Z","to":"2026-01-01T15:00:00Z"}]}`, 201, "")
	if day := want.From.Add(-24 * time.Hour); by.last.Onset != want.From.Add(10*time.Minute) || !slices.Equal(by.last.Baseline, []TimeRange{{day, day.Add(time.Hour)}}) {
		t.Errorf("onset %s, baseline %v", by.last.Onset, by.last.Baseline)
	}
	f(jsonHeader, `{}`, 201, "")
	if by.last.To.Sub(by.last.From) != time.Hour || time.Since(by.last.To) > time.Minute {
		t.Errorf("without times it asks for %s to %s", by.last.From, by.last.To)
	}
	f(map[string]string{"Content-Type": "application/json; charset=utf-8"}, `{"from":"30m"}`, 201, "")
	f(nil, `{}`, 415, "application/json")
	f(map[string]string{"Content-Type": "text/plain"}, `{}`, 415, "application/json")
	f(formHeader, `from=1`, 415, "application/json")
	f(jsonHeader, ``, 400, "cannot read the request")
	f(jsonHeader, `{"form":"1"}`, 400, `unknown field \"form\"`)
	f(jsonHeader, `{} {}`, 400, "something follows")
	f(jsonHeader, `{"from":"x"}`, 400, `invalid parameter \"from\"`)
	f(jsonHeader, `{"from":"now","to":"1h"}`, 400, "exchange from and to")
	f(jsonHeader, `{"onset":"2h"}`, 400, "outside the window")
	f(jsonHeader, `{"baseline":[{"from":"1h","to":"2h"}]}`, 400, "exchange from and to")
	f(jsonHeader, `{"baseline":[{"from":"1h"}]}`, 400, `invalid parameter \"baseline\"`)
	f(jsonHeader, `{"baseline":[{"from":"30d","to":"2h"}]}`, 400, "shorter baseline")
	f(jsonHeader, `{"baseline":[`+strings.Repeat(`{"from":"3h","to":"2h"},`, 20)+`{"from":"3h","to":"2h"}]}`, 400, "unite some")
	f(jsonHeader, `{"from":"30d"}`, 400, "above the limit of 168h")
	f(jsonHeader, `{"symptom":"`+strings.Repeat("a", 2<<20)+`"}`, 413, "may have 1048576 bytes")

	w := ask(t, h, "POST", "/api/v1/investigations?format=markdown", jsonHeader, `{}`)
	if w.Code != 201 || w.Body.String() != "markdown of inq-1" || w.Header().Get("Location") != "/api/v1/investigations/inq-1" {
		t.Errorf("got %d %s %v", w.Code, w.Body, w.Header())
	}
	askChecked(t, h, 400, "POST", "/api/v1/investigations?format=pdf", jsonHeader, `{}`)

	by.err = fmt.Errorf("no telemetry: %w", store.ErrQuery)
	f(jsonHeader, `{}`, 400, "no telemetry")
	h = newTestHandler(t, Config{})
	f(jsonHeader, `{}`, 501, "holds no inquests")
}

func TestStoredInvestigations(t *testing.T) {
	inv := testInvestigation()
	row := map[string]string{"_time": testNow.Format(time.RFC3339Nano), "record.type": "verdict"}
	for _, f := range VerdictFields(inv) {
		row[f.Name] = f.Value
	}
	listed := map[string]string{}
	for k, v := range row {
		if k != FieldVerdictJSON {
			listed[k] = v
		}
	}
	h := newTestHandler(t, Config{
		Investigator: &fakeInvestigator{},
		Records: &fakeRecords{answers: []fakeAnswer{
			{contains: `"verdict.state":="suspected"`},
			{contains: `| fields "_time", "verdict.id"`, rows: []map[string]string{listed}},
			{contains: `"verdict.id":="inq-1"`, rows: []map[string]string{row}},
		}},
	})
	f := func(target string, code int, want string) {
		t.Helper()
		if w := askChecked(t, h, code, "GET", target, nil, ""); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s answers %s, want %s", target, w.Body, want)
		}
	}
	const head = `{"id":"inq-1","state":"confirmed","created":"2026-01-02T15:04:05Z","from":"2026-01-02T14:04:05Z","to":"2026-01-02T15:04:05Z","symptom":"slow","cause":"cart: CPU throttled"`
	f("/api/v1/investigations", 200, `{"status":"success","data":[`+head+`}]}`)
	f("/api/v1/investigations?state=suspected&limit=5", 200, `"data":[]`)
	f("/api/v1/investigations?state=sure", 400, "not confirmed, suspected or inconclusive")
	f("/api/v1/investigations/inq-1", 200, head+`,"verdict":{"state":"confirmed"}}`)
	for _, format := range []string{"markdown", "html", "text"} {
		f("/api/v1/investigations/inq-1?format="+format, 200, format+" of inq-1")
	}
	f("/api/v1/investigations/inq-2", 404, `no verdict has the id \"inq-2\"`)
	f("/api/v1/investigations/a%22)%20or%20(*", 404, "no verdict")
	if csp := ask(t, h, "GET", "/api/v1/investigations/inq-1?format=html", nil, "").Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("an HTML report has the policy %q", csp)
	}
}

func TestStatus(t *testing.T) {
	h := newTestHandler(t, Config{Version: "1.2", Status: func() any { return map[string]int{"Acknowledged": 3} }})
	w := askChecked(t, h, 200, "GET", "/api/v1/status", nil, "")
	if got := strings.TrimSpace(w.Body.String()); got != `{"status":"success","data":{"recorder":{"Acknowledged":3},"version":"1.2"}}` {
		t.Errorf("got %s", got)
	}
	if w := askChecked(t, h, 200, "GET", "/healthz", nil, ""); w.Body.String() != "ok\n" {
		t.Errorf("got %q", w.Body)
	}
	if w := askChecked(t, h, 200, "GET", "/api/v1/openapi.yaml", nil, ""); !strings.HasPrefix(w.Body.String(), "openapi: 3.1") {
		t.Error("the OpenAPI file is not served")
	}
}
