package recorder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"inquest/admit"
	"inquest/admit/event"
	"inquest/admit/redact"
	"inquest/record"
	"inquest/store/payload"
)

// Payloads are the raw inputs of events that are kept.
type Payloads struct {
	Store   payload.Store
	Capture *redact.Capture
}

// parallelPuts is how many payloads of one batch are stored at once: each waits
// for the disk.
const parallelPuts = 16

// captureInputs keeps the raw inputs that services opted in for, before the
// records that refer to them are acknowledged. The records get the payload's
// hash and the input's size.
func (r *Recorder) captureInputs(ctx context.Context, inputs []admit.Input) error {
	for _, in := range inputs {
		in.Record.Attributes().PutInt(record.FieldInputSize, int64(len(in.Text)))
	}
	p := r.opts.Payloads
	if p == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelPuts)
	for _, in := range inputs {
		content, redacted, keep := p.Capture.Apply(in.Service, []byte(in.Text))
		if keep {
			// Records are distinct, so their attributes can be set at once.
			group.Go(func() error { return p.keep(ctx, in, content, redacted) })
		}
	}
	return group.Wait()
}

func (p *Payloads) keep(ctx context.Context, in admit.Input, content []byte, redacted bool) error {
	attrs := in.Record.Attributes()
	meta := payload.Meta{
		Service: in.Service, UserID: in.UserID, ContentType: "text/plain; charset=utf-8",
		Time: time.Unix(0, record.LogTime(in.Record, time.Now().UnixNano())),
	}
	if id, ok := attrs.Get(event.AttributeRequestID); ok {
		meta.RequestID = id.AsString()
	}
	if redacted {
		meta.InputHash = payload.SumOf([]byte(in.Text))
	}
	sum, err := p.Store.Put(ctx, payload.Sum{}, meta, content)
	switch {
	case errors.Is(err, payload.ErrErased), errors.Is(err, payload.ErrTooLarge):
		return nil // hash and size are what stays
	case err != nil:
		return fmt.Errorf("cannot keep the raw input of an event: %w", err)
	}
	attrs.PutStr(record.FieldPayload, sum.String())
	if redacted {
		attrs.PutBool(record.FieldPayloadRedacted, true)
	}
	return nil
}
