package payload_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"inquest/journal/vfs"
	"inquest/store/payload"
	"inquest/store/payload/folder"
)

func TestOpenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		tries, down := 0, fmt.Errorf("%w: down", payload.ErrUnavailable)
		open := func(ctx context.Context) (payload.Store, error) {
			if tries++; tries < 4 {
				return nil, down
			}
			return folder.Open(ctx, vfs.OS{}, t.TempDir(), payload.Options{})
		}
		l, err := payload.OpenLater(t.Context(), open, time.Minute, log)
		if err != nil {
			t.Fatal(err)
		}
		m := payload.Meta{UserID: "ann", Time: time.Now()}
		for range 3 {
			if _, err := l.Put(t.Context(), payload.Sum{}, m, []byte("x")); !errors.Is(err, payload.ErrUnavailable) {
				t.Errorf("put: %v", err)
			}
			if _, err := l.EraseUser(t.Context(), "ann"); !errors.Is(err, payload.ErrUnavailable) {
				t.Errorf("erase: %v", err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if sum, err := l.Put(t.Context(), payload.Sum{}, m, []byte("x")); err != nil || sum != payload.SumOf([]byte("x")) {
			t.Errorf("put: %s, %v", sum, err)
		}
		if n := l.Usage().Payloads; n != 1 {
			t.Errorf("%d payloads", n)
		}
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if _, err := l.Get(t.Context(), payload.Sum{}); !errors.Is(err, payload.ErrClosed) {
			t.Errorf("get after close: %v", err)
		}
	})
}

// What somebody has to mend is told at once.
func TestOpenLaterFails(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	wrong := errors.New("no such bucket")
	if _, err := payload.OpenLater(t.Context(), func(context.Context) (payload.Store, error) { return nil, wrong }, time.Minute, log); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		l, err := payload.OpenLater(t.Context(), func(context.Context) (payload.Store, error) {
			if tries++; tries == 1 {
				return nil, fmt.Errorf("%w: down", payload.ErrUnavailable)
			}
			return nil, wrong
		}, time.Minute, log)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if tries != 2 {
			t.Errorf("tried %d times, want 2", tries)
		}
		if _, got := l.Get(t.Context(), payload.Sum{}); !errors.Is(got, wrong) || !errors.Is(got, payload.ErrUnavailable) {
			t.Errorf("get: %v", got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
