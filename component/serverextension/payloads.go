package serverextension

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"inquest/admit/redact"
	"inquest/alert"
	"inquest/journal/vfs"
	"inquest/recorder"
	"inquest/store/payload"
	"inquest/store/payload/folder"
	"inquest/store/payload/s3"
)

// PayloadsConfig says whose raw inputs are kept, how much of them, and where.
type PayloadsConfig struct {
	redact.CaptureConfig `mapstructure:",squash"`
	// MaxTotal bounds the content of all payloads; the oldest go first. Default: 10GiB.
	MaxTotal Size `mapstructure:"max_total"`
	// MaxAge is how long payloads are kept. Default: 720h.
	MaxAge time.Duration `mapstructure:"max_age"`
	// Required makes senders send again while a payload cannot be kept. Default:
	// false, which records the event without it and says so on the record.
	Required bool `mapstructure:"required"`
	// S3 keeps the payloads in S3-compatible storage; it must exist as long as
	// there are payloads to expire or to erase, also without policies. Default:
	// none, which keeps them in the data folder.
	S3 *s3.Config `mapstructure:"s3"`
}

// Validate says what is wrong. What is within, the policies and s3, is asked by
// the Collector by itself.
func (c *PayloadsConfig) Validate() error {
	var errs []error
	if c.MaxTotal == 0 {
		errs = append(errs, errors.New("max_total is 0: give a size, such as 10GiB, or leave out policies to keep nothing"))
	}
	if c.MaxAge <= 0 {
		errs = append(errs, fmt.Errorf("max_age is %s: it must be above 0", c.MaxAge))
	}
	return errors.Join(errs...)
}

const (
	// sweepInterval is the time between two looks for payloads past their age.
	sweepInterval = time.Hour
	// openTimeout is how long a start waits for the bucket, openInterval how
	// often it is tried from then on.
	openTimeout  = 10 * time.Second
	openInterval = 15 * time.Second
)

// havePayloads tells whether there may be payloads: what was kept while there was
// consent has to expire, and can be erased, when there is none any more.
func (c *Config) havePayloads() bool {
	if len(c.Payloads.Policies) > 0 || c.Payloads.S3 != nil {
		return true
	}
	_, err := os.Stat(filepath.Join(c.Path, payloadsDir))
	return err == nil
}

// payloadsDir is the folder of payloads in the data folder.
const payloadsDir = "payloads"

func (a *admission) openPayloads(ctx context.Context, c *Config) error {
	if len(c.Payloads.Policies) == 0 {
		a.log.Warn("no service consented to have payloads kept: set payloads::policies to keep any")
	}
	capture, err := redact.NewCapture(c.Payloads.CaptureConfig)
	if err != nil {
		return err
	}
	store, err := a.payloadStoreOf(ctx, c)
	if err != nil {
		return err
	}
	a.payloads = &recorder.Payloads{
		Store: store, Capture: capture, Required: c.Payloads.Required,
		OnMissing: func(service string, err error) {
			a.alerts.Notify(alert.Event{
				Reason: "payload.unavailable", Service: service, Source: "recorder",
				Text: "a raw input that was to be kept is not: " + err.Error(),
				Hint: "bring the payload store back; the events have payload.missing",
			})
		},
	}
	ctx, a.stop = context.WithCancel(context.Background())
	a.swept = make(chan struct{})
	go func() {
		defer close(a.swept)
		for tick := time.NewTicker(sweepInterval); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				if _, err := store.Sweep(ctx); err != nil && ctx.Err() == nil {
					a.log.Error("cannot remove payloads past their age", "error", err)
				}
			}
		}
	}()
	return nil
}

func (a *admission) payloadStoreOf(ctx context.Context, c *Config) (payload.Store, error) {
	o := payload.Options{MaxTotal: int64(c.Payloads.MaxTotal), MaxAge: c.Payloads.MaxAge, MaxPayload: c.Payloads.largest()}
	if c.Payloads.S3 == nil {
		return folder.Open(ctx, vfs.OS{}, filepath.Join(c.Path, payloadsDir), o)
	}
	first := true
	return payload.OpenLater(ctx, func(ctx context.Context) (payload.Store, error) {
		limit := time.Hour // a bucket with many payloads takes long to list
		if first {
			limit, first = openTimeout, false
		}
		within, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		store, err := s3.Open(within, *c.Payloads.S3, o)
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%w: not open after %s: %w", payload.ErrUnavailable, limit, err)
		}
		return store, err
	}, openInterval, a.log)
}

// largest is the size that the policies allow at most.
func (c *PayloadsConfig) largest() int64 {
	n := redact.DefaultMaxSize
	for _, p := range c.Policies {
		n = max(n, p.MaxSize)
	}
	return int64(n)
}

// abandon ends what newAdmission started when there is no recorder to close the
// payload store.
func (a *admission) abandon(ctx context.Context) error {
	err := a.close(ctx)
	if a.payloads != nil {
		err = errors.Join(err, a.payloads.Store.Close())
	}
	return err
}

// payloadStore is nil where nothing is captured.
func (a *admission) payloadStore() payload.Store {
	if a.payloads == nil {
		return nil
	}
	return a.payloads.Store
}
