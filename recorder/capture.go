package recorder

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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
	// Required makes the sender send again where a payload cannot be kept.
	// Otherwise its event is recorded without, with [record.FieldPayloadMissing].
	Required bool
	// Wait is how long an event is held back for its payload; 5 s when zero. The
	// sender's deadline counts too, so that there is time left to answer.
	Wait time.Duration
	// OnMissing is told of each event whose payload could not be kept. It must
	// return at once. It may be nil.
	OnMissing func(service string, err error)

	// resume is when the store is tried again after it failed, in ns; 0 while
	// it works.
	resume atomic.Int64
}

const (
	payloadWait = 5 * time.Second
	// payloadPause is how long a store that failed is left alone: events must
	// not each wait for it. Then one of them tries.
	payloadPause = 10 * time.Second
	// parallelPuts is how many payloads of one batch are stored at once: each
	// waits for the disk or the network.
	parallelPuts = 16
)

// patience is how long the store may take before a sender that went away
// meanwhile speaks against it.
const patience = time.Second

// missingUnavailable is why a payload is missing: the store did not take it.
const missingUnavailable = "unavailable"

// captureInputs keeps the raw inputs that services opted in for, before the
// records that refer to them are acknowledged. The records get the payload's
// hash and the input's size. A record never names a payload that is not durable.
func (r *Recorder) captureInputs(ctx context.Context, inputs []admit.Input, required bool) error {
	for _, in := range inputs {
		in.Record.Attributes().PutInt(record.FieldInputSize, int64(len(in.Text)))
	}
	p := r.opts.Payloads
	if p == nil {
		return nil
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelPuts)
	for _, in := range inputs {
		content, redacted, keep := p.Capture.Apply(in.Service, []byte(in.Text))
		if !keep {
			continue
		}
		// Records are distinct, so their attributes can be set at once.
		group.Go(func() error {
			err := r.keep(gctx, in, content, redacted)
			switch {
			case err == nil:
				return nil
			case gctx.Err() != nil: // nobody waits for the answer any more
				return gctx.Err()
			case required:
				return fmt.Errorf("cannot keep the raw input of an event: %w", err)
			}
			in.Record.Attributes().PutStr(record.FieldPayloadMissing, missingUnavailable)
			r.counts.missingPayloads.Add(1)
			if p.OnMissing != nil {
				p.OnMissing(in.Service, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// keep stores one payload and names it on the record. An error says that the
// store does not take it now.
func (r *Recorder) keep(ctx context.Context, in admit.Input, content []byte, redacted bool) error {
	p := r.opts.Payloads
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
	if !p.mayTry() {
		return fmt.Errorf("%w: it failed a moment ago and is left alone for %s", payload.ErrUnavailable, payloadPause)
	}
	began := time.Now()
	sum, err := p.put(ctx, meta, content)
	switch {
	case err != nil && ctx.Err() != nil && time.Since(began) < patience:
		return err // says nothing about the store
	case errors.Is(err, payload.ErrErased), errors.Is(err, payload.ErrTooLarge):
		p.worked(r)
		return nil // hash and size are what stays
	case err != nil:
		p.failed(r, err)
		return err
	}
	p.worked(r)
	attrs.PutStr(record.FieldPayload, sum.String())
	if redacted {
		attrs.PutBool(record.FieldPayloadRedacted, true)
	}
	return nil
}

// put waits for the store as long as it may. It does not leave that to the
// store, which may be waiting for an erasure.
func (p *Payloads) put(ctx context.Context, m payload.Meta, content []byte) (payload.Sum, error) {
	wait := p.Wait
	if wait <= 0 {
		wait = payloadWait
	}
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("%w: it did not answer in %s", payload.ErrUnavailable, wait.Round(time.Millisecond)))
	type answer struct {
		sum payload.Sum
		err error
	}
	done := make(chan answer, 1)
	go func() {
		defer cancel()
		sum, err := p.Store.Put(ctx, payload.Sum{}, m, content)
		done <- answer{sum, err}
	}()
	select {
	case a := <-done:
		return a.sum, a.err
	case <-ctx.Done():
	}
	select { // the end of Put ends ctx too
	case a := <-done:
		return a.sum, a.err
	default:
		return payload.Sum{}, context.Cause(ctx)
	}
}

// mayTry is true while the store works, and for one caller after each pause.
func (p *Payloads) mayTry() bool {
	resume := p.resume.Load()
	if resume == 0 {
		return true
	}
	now := time.Now()
	return now.UnixNano() >= resume && p.resume.CompareAndSwap(resume, now.Add(payloadPause).UnixNano())
}

func (p *Payloads) failed(r *Recorder, err error) {
	if p.resume.Swap(time.Now().Add(payloadPause).UnixNano()) == 0 {
		r.log.Error("the payload store takes nothing; it is tried again from time to time", "pause", payloadPause.String(), "required", p.Required, "error", err)
	}
}

func (p *Payloads) worked(r *Recorder) {
	if p.resume.Load() != 0 && p.resume.Swap(0) != 0 {
		r.log.Info("the payload store takes payloads again")
	}
}
