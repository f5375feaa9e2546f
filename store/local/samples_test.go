package local

import (
	"testing"
	"time"

	"inquest/store"
	"inquest/store/storetest"
)

func openSamples(t testing.TB, o SamplesOptions) *Samples {
	t.Helper()
	s, err := OpenSamples(o)
	if err != nil {
		t.Fatalf("OpenSamples: %v", err)
	}
	return s
}

func TestSamplesConformance(t *testing.T) {
	storetest.Samples(t, func(t testing.TB, dir string) store.Samples {
		return openSamples(t, SamplesOptions{Dir: dir})
	})
}

func TestSamplesConformanceLongRetention(t *testing.T) {
	storetest.Samples(t, func(t testing.TB, dir string) store.Samples {
		return openSamples(t, SamplesOptions{Dir: dir, Retention: time.Since(time.Unix(0, 0)) + 48*time.Hour})
	})
}
