package spool

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain also is the children that tests start of themselves.
func TestMain(m *testing.M) {
	if RunIfWatchdog() {
		return
	}
	if dir := os.Getenv("INQUEST_TEST_CHILD"); dir != "" {
		appendForever(dir, os.Getenv("INQUEST_TEST_ENDPOINT"))
		return
	}
	goleak.VerifyTestMain(m)
}
