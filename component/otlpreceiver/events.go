package otlpreceiver

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit"
	"inquest/admit/event"
)

// lineTypes are the content types of JSON lines.
var lineTypes = map[string]bool{
	"application/x-ndjson": true, "application/ndjson": true, "application/jsonl": true,
	"application/x-jsonlines": true, typeJSON: true,
}

const sourceLines = "jsonl"

// serveEvents takes AI events as JSON lines, one object a line. It answers as
// OTLP over HTTP does for log records, in JSON, when every line is kept: as an
// event, or as a dead letter with the reason.
func serveEvents(e *signalEndpoint[plog.Logs]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "send events with POST, one JSON object a line", http.StatusMethodNotAllowed)
			return
		}
		mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || !lineTypes[mediaType] {
			http.Error(w, fmt.Sprintf("content type %.100q is not JSON lines: send application/x-ndjson", r.Header.Get("Content-Type")), http.StatusUnsupportedMediaType)
			return
		}
		buf := bodies.Get().(*bytes.Buffer)
		defer putBody(buf)
		body, err := readBody(buf, r)
		if err != nil {
			writeError(w, jsonText, bodyError(err))
			return
		}
		ctx, report := admit.WithReport(e.begin(e.obs, r.Context()))
		report.SetSource(sourceLines)
		ld, err := eventLines(body, report)
		n := ld.LogRecordCount()
		if err == nil && n+len(report.Letters()) > 0 {
			err = e.consume(ctx, ld)
		}
		e.end(e.obs, ctx, sourceLines, n, err)
		if err != nil {
			writeError(w, jsonText, err)
			return
		}
		msg, err := e.respond(report.Rejected(), report.Message()).MarshalJSON()
		if err != nil {
			writeError(w, jsonText, err)
			return
		}
		write(w, jsonText, http.StatusOK, msg)
	}
}

// eventLines turns lines into log records; those that are none become dead
// letters.
func eventLines(body []byte, report *admit.Report) (plog.Logs, error) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	lines := event.NewBatch()
	refuse := func(text []byte, why *event.Reason) {
		report.Reject(1, "line refused, "+why.Code)
		report.Put(admit.Letter{
			Reason: why.Code, Rule: why.Rule, Detail: why.Detail, Kind: admit.LetterEvent, Records: 1,
			Payload: strings.ToValidUTF8(string(text), "\uFFFD"), Encoding: admit.EncodingText,
		})
	}
	err := event.ReadLines(bytes.NewReader(body), 0, func(line event.Line, why *event.Reason) error {
		text := line.Text
		if why != nil && line.Offset+line.Size <= int64(len(body)) {
			text = body[line.Offset : line.Offset+line.Size] // whole, however long
		}
		if why == nil {
			why = lines.Add(text)
		}
		if why != nil {
			refuse(text, why)
		}
		return nil
	})
	ld := lines.Logs()
	for _, rl := range ld.ResourceLogs().All() {
		for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
			if !event.Recognise(lr) {
				lr.SetEventName(event.Prefix) // every line is meant as an event
			}
		}
	}
	return ld, err
}
