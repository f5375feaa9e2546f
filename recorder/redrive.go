package recorder

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/admit"
	"inquest/admit/event"
	"inquest/record"
	"inquest/store"
)

// How many letters, and bytes of them, are tried in one journal entry.
const (
	redriveLetters = 500
	redriveBytes   = 8 << 20
)

// Redrive admits the letters of f again, as if they came now. What is stored is
// stored in one journal entry with the note that its letter is done, so that no
// crash brings it back or loses it. Letters that are still refused stay as they
// are.
func (r *Recorder) Redrive(ctx context.Context, f admit.LetterFilter) (admit.Redriven, error) {
	d := redrive{r: r, out: admit.Redriven{Refused: map[string]int{}}}
	err := r.eachLetter(ctx, f, func(l storedLetter) error {
		d.out.Letters++
		return d.add(ctx, l)
	})
	if err == nil {
		err = d.flush(ctx)
	}
	if err != nil {
		return d.out, fmt.Errorf("cannot re-drive dead letters: %w", err)
	}
	return d.out, nil
}

// Discard marks the letters of f as done without storing their records, for the
// reason that a person gives. They stay in the store of records until their
// retention ends. It returns how many there were.
func (r *Recorder) Discard(ctx context.Context, f admit.LetterFilter, why string) (int, error) {
	if strings.TrimSpace(why) == "" {
		return 0, errors.New("cannot discard dead letters without a reason: say why they are not needed")
	}
	n := 0
	var rows []record.Row
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		err := r.Rows(ctx, rows)
		rows = nil
		return err
	}
	err := r.eachLetter(ctx, f, func(l storedLetter) error {
		n++
		row := doneRow(l, "discarded")
		row.Fields = append(row.Fields, record.Field{Name: record.FieldBody, Value: why})
		if rows = append(rows, row); len(rows) < redriveLetters {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return n, fmt.Errorf("cannot discard dead letters: %w", err)
	}
	return n, nil
}

// storedLetter is a dead letter as it is read back.
type storedLetter struct {
	id, service, source string
	admit.Letter
}

// eachLetter calls fn for each open letter of f. One caller at a time works on
// letters, so that none is done twice.
func (r *Recorder) eachLetter(ctx context.Context, f admit.LetterFilter, fn func(storedLetter) error) error {
	r.letters.Lock()
	defer r.letters.Unlock()
	if err := r.CatchUp(ctx); err != nil {
		return err
	}
	return r.opts.Records.QueryRecords(ctx, store.RecordQuery{LogsQL: f.Query(), From: f.From, To: f.To}, func(fields []record.Field) error {
		l, parts := readLetter(fields)
		if parts > 1 {
			rest, err := r.letterParts(ctx, l.id, parts)
			if err != nil {
				return err
			}
			l.Payload += rest
		}
		return fn(l)
	})
}

func readLetter(fields []record.Field) (l storedLetter, parts int) {
	for _, f := range fields {
		v := strings.Clone(f.Value)
		switch f.Name {
		case record.FieldLetterID:
			l.id = v
		case "service.name":
			l.service = v
		case record.FieldLetterSource:
			l.source = v
		case record.FieldLetterReason:
			l.Reason = v
		case record.FieldLetterKind:
			l.Kind = admit.LetterKind(v)
		case record.FieldLetterEncoding:
			l.Encoding = admit.Encoding(v)
		case record.FieldLetterPayload:
			l.Payload = v
		case record.FieldLetterParts:
			parts, _ = strconv.Atoi(v) // written by us
		}
	}
	return l, parts
}

// letterParts returns the payload of a letter from its second part on.
func (r *Recorder) letterParts(ctx context.Context, id string, parts int) (string, error) {
	texts := make([]string, parts)
	found := 1
	q := fmt.Sprintf("{%q=%q} %q:=%q", record.FieldType, string(record.TypeDeadLetterPart), record.FieldLetterID, id)
	err := r.opts.Records.QueryRecords(ctx, store.RecordQuery{LogsQL: q}, func(fields []record.Field) error {
		n, text := 0, ""
		for _, f := range fields {
			switch f.Name {
			case record.FieldLetterPart:
				n, _ = strconv.Atoi(f.Value) // written by us
			case record.FieldLetterPayload:
				text = strings.Clone(f.Value)
			}
		}
		if n > 0 && n < parts {
			texts[n] = text
			found++
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if found != parts {
		return "", fmt.Errorf("letter %s has %d of its %d parts: the others are past the retention", id, found, parts)
	}
	return strings.Join(texts, ""), nil
}

// redrive gathers letters that are admitted now, by the signal of their records.
type redrive struct {
	r    *Recorder
	out  admit.Redriven
	size int
	n    int // letters gathered

	logs    redriven[plog.Logs]
	traces  redriven[ptrace.Traces]
	metrics redriven[pmetric.Metrics]
}

// redriven is what goes into one journal entry.
type redriven[T any] struct {
	data    T
	any     bool
	records int
	letters int
	rows    []record.Row
	no      int // of the next letter about what is still refused
}

func (d *redrive) add(ctx context.Context, l storedLetter) error {
	received := time.Now().UnixNano()
	rep := &admit.Report{}
	rep.SetSource(l.source)
	kept, err := d.admit(ctx, l, received, rep)
	if err != nil {
		if _, ok := errors.AsType[*notReadable](err); !ok {
			return err
		}
		d.out.Refused[l.Reason]++
		return nil
	}
	if kept == 0 {
		reason := l.Reason
		if again := rep.Letters(); len(again) > 0 {
			reason = again[0].Reason
		}
		d.out.Refused[reason]++
		return nil
	}
	d.n++
	d.size += len(l.Payload)
	if d.n >= redriveLetters || d.size >= redriveBytes {
		return d.flush(ctx)
	}
	return nil
}

// notReadable says that a letter holds nothing that can be admitted.
type notReadable struct{ error }

// admit admits the letter's records, and gathers those that are kept.
func (d *redrive) admit(ctx context.Context, l storedLetter, received int64, rep *admit.Report) (kept int, err error) {
	switch {
	case l.Encoding == admit.EncodingText && l.Kind == admit.LetterEvent:
		lines := event.NewBatch()
		if why := lines.Add([]byte(l.Payload)); why != nil {
			return 0, &notReadable{errors.New(why.Detail)}
		}
		return d.admitLogs(ctx, l, lines.Logs(), received, rep)
	case l.Encoding != admit.EncodingOTLP:
		return 0, &notReadable{errors.New("the letter holds what does not decode")}
	}
	switch l.Kind {
	case admit.LetterEvent, admit.LetterLog:
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs([]byte(l.Payload))
		if err != nil {
			return 0, &notReadable{err}
		}
		return d.admitLogs(ctx, l, ld, received, rep)
	case admit.LetterSpan:
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(l.Payload))
		if err != nil {
			return 0, &notReadable{err}
		}
		if kept = d.r.opts.Policy.Spans(td, d.r.bounds(d.r.opts.Records), received, rep); kept > 0 {
			d.traces.start(ptrace.NewTraces)
			td.ResourceSpans().MoveAndAppendTo(d.traces.data.ResourceSpans())
			d.traces.done(l, kept, rep, received)
		}
	case admit.LetterPoint:
		md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics([]byte(l.Payload))
		if err != nil {
			return 0, &notReadable{err}
		}
		if kept = admit.Metrics(md, d.r.pointBounds(), received, rep); kept > 0 {
			d.metrics.start(pmetric.NewMetrics)
			md.ResourceMetrics().MoveAndAppendTo(d.metrics.data.ResourceMetrics())
			d.metrics.done(l, kept, rep, received)
		}
	}
	return kept, nil
}

func (d *redrive) admitLogs(ctx context.Context, l storedLetter, ld plog.Logs, received int64, rep *admit.Report) (int, error) {
	kept, inputs := d.r.opts.Policy.Logs(ld, d.r.bounds(d.r.opts.Records), received, rep)
	if kept == 0 {
		return 0, nil
	}
	// The letter still has the input, and can wait for the payload store.
	if err := d.r.captureInputs(ctx, inputs, true); err != nil {
		return 0, err
	}
	d.logs.start(plog.NewLogs)
	ld.ResourceLogs().MoveAndAppendTo(d.logs.data.ResourceLogs())
	d.logs.done(l, kept, rep, received)
	return kept, nil
}

func (e *redriven[T]) start(empty func() T) {
	if !e.any {
		*e = redriven[T]{data: empty(), any: true}
	}
}

// done notes that the letter is done; what of it is still refused becomes new
// letters.
func (e *redriven[T]) done(l storedLetter, kept int, rep *admit.Report, received int64) {
	e.records += kept
	e.letters++
	e.rows = append(e.rows, doneRow(l, "redriven"))
	for _, again := range rep.TakeLetters() {
		e.rows = append(e.rows, again.Rows(e.no, received, l.source)...)
		e.no++
	}
}

func doneRow(l storedLetter, outcome string) record.Row {
	row := record.Row{
		Time:   time.Now().UnixNano(),
		Stream: []record.Field{{Name: record.FieldType, Value: string(record.TypeDeadLetterDone)}},
		Fields: []record.Field{
			{Name: record.FieldLetterID, Value: l.id},
			{Name: record.FieldLetterReason, Value: l.Reason},
			{Name: record.FieldLetterOutcome, Value: outcome},
		},
	}
	if l.service != "" {
		row.Stream = append(row.Stream, record.Field{Name: "service.name", Value: l.service})
	}
	return row
}

// flush records what was gathered.
func (d *redrive) flush(ctx context.Context) error {
	now := time.Now().UnixNano()
	logs, traces, metrics := d.logs, d.traces, d.metrics
	d.logs.any, d.traces.any, d.metrics.any, d.n, d.size = false, false, false, 0, 0
	if logs.any {
		if err := d.record(ctx, &batch{received: now, logs: &logs.data, rows: logs.rows}, logs.letters, logs.records); err != nil {
			return err
		}
		d.r.counts.acceptedLogs.Add(uint64(logs.records))
	}
	if traces.any {
		if err := d.record(ctx, &batch{received: now, traces: &traces.data, rows: traces.rows}, traces.letters, traces.records); err != nil {
			return err
		}
		d.r.counts.acceptedSpans.Add(uint64(traces.records))
	}
	if metrics.any {
		if err := d.record(ctx, &batch{received: now, metrics: &metrics.data, rows: metrics.rows}, metrics.letters, metrics.records); err != nil {
			return err
		}
		d.r.counts.acceptedPoints.Add(uint64(metrics.records))
	}
	return nil
}

func (d *redrive) record(ctx context.Context, b *batch, letters, records int) error {
	if err := d.r.record(ctx, nil, b); err != nil {
		return err
	}
	d.out.Done += letters
	d.out.Records += records
	return nil
}
