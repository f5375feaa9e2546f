package serverextension

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"inquest/api"
	"inquest/catalog"
	"inquest/record"
	"inquest/recorder"
	"inquest/sensor/stored"
	"inquest/verdict"
	"inquest/verdict/report"
)

// investigator holds inquests on what the recorder keeps, and records the
// verdicts through it.
type investigator struct {
	rec    *recorder.Recorder
	faults *catalog.Catalog
}

func newInvestigator(rec *recorder.Recorder, faults *catalog.Catalog) api.Investigator {
	return &investigator{rec: rec, faults: faults}
}

// Investigate implements [api.Investigator].
func (i *investigator) Investigate(ctx context.Context, req api.InvestigationRequest) (api.Investigation, error) {
	q := verdict.Question{From: req.From, To: req.To, Symptom: symptom(req)}
	if !req.Onset.IsZero() {
		q.Onset = &req.Onset
	}
	for _, b := range req.Baseline {
		q.Baseline = append(q.Baseline, verdict.Range{From: b.From, To: b.To})
	}
	engine, err := verdict.New(stored.New(i.rec.Records(), i.rec.Samples()), verdict.Options{Catalog: i.faults})
	if err != nil {
		return api.Investigation{}, err
	}
	v, err := engine.Investigate(ctx, q)
	if err != nil {
		return api.Investigation{}, err
	}
	body, err := encode(v)
	if err != nil {
		return api.Investigation{}, err
	}
	created := time.Now().UTC()
	inv := api.Investigation{
		ID: verdictID(created, body), Created: created,
		From: req.From, To: req.To, Symptom: req.Symptom,
		State: string(v.State), Verdict: body,
	}
	if v.Cause != nil {
		inv.Cause = v.Summary
	}
	row := record.Row{
		Time:   created.UnixNano(),
		Stream: []record.Field{{Name: record.FieldType, Value: string(record.TypeVerdict)}},
		Fields: append(api.VerdictFields(inv), record.Field{Name: record.FieldBody, Value: v.Summary}),
	}
	if err := i.rec.Rows(ctx, []record.Row{row}); err != nil {
		return api.Investigation{}, fmt.Errorf("cannot record the verdict: %w", err)
	}
	return inv, nil
}

// verdictID is unique by time and content.
func verdictID(created time.Time, body []byte) string {
	sum := sha256.Sum256(body)
	return created.Format("20060102T150405.000") + "-" + hex.EncodeToString(sum[:4])
}

// maxVerdict leaves room in a record for the other fields.
const maxVerdict = record.MaxRowSize - 64<<10

// encode writes a verdict that fits into a record: where it does not, samples
// of raw evidence go first, then findings from the last on; the queries that
// lead to all of it stay.
func encode(v *verdict.Verdict) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil || len(body) <= maxVerdict {
		return body, err
	}
	cut := *v
	cut.Findings = make([]record.Finding, len(v.Findings))
	for i, f := range v.Findings {
		refs := make([]record.Reference, len(f.Evidence))
		for j, ref := range f.Evidence {
			ref.Items = nil
			refs[j] = ref
		}
		f.Evidence = refs
		cut.Findings[i] = f
	}
	for {
		if body, err = json.Marshal(&cut); err != nil || len(body) <= maxVerdict || len(cut.Findings) == 0 {
			return body, err
		}
		cut.Findings = cut.Findings[:len(cut.Findings)*3/4]
		cut.NotExamined = append(v.NotExamined[:len(v.NotExamined):len(v.NotExamined)], verdict.Missing{
			Source: "findings", Reason: "the verdict is larger than a record may be; its least findings were left out",
		})
	}
}

func symptom(req api.InvestigationRequest) *verdict.Symptom {
	if req.Symptom == "" && req.Service == "" && req.Operation == "" && req.Metric == "" {
		return nil
	}
	s := &verdict.Symptom{Operation: req.Operation, Metric: req.Metric, Text: req.Symptom}
	if req.Service != "" {
		s.Entity = &record.Entity{Kind: record.EntityService, Name: req.Service}
	}
	return s
}

// Render implements [api.Investigator].
func (i *investigator) Render(w io.Writer, inv api.Investigation, format string) error {
	return report.WriteEncoded(w, inv.Verdict, format)
}
