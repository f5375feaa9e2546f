package local

import (
	"testing"
	"time"

	"inquest/store"
	"inquest/store/storetest"
)

func openRecords(t testing.TB, o RecordsOptions) *Records {
	t.Helper()
	r, err := OpenRecords(o)
	if err != nil {
		t.Fatalf("OpenRecords: %v", err)
	}
	return r
}

func TestRecordsConformance(t *testing.T) {
	storetest.Records(t, func(t testing.TB, dir string) store.Records {
		return openRecords(t, RecordsOptions{Dir: dir, Retention: time.Since(time.Unix(0, 0)) + 48*time.Hour})
	})
}
