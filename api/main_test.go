package api

import (
	"testing"

	"go.uber.org/goleak"
)

// Packages of VictoriaLogs, used here for their parser, start goroutines that
// never end.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }
