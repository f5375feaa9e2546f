package recorder

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		crashChild(dir)
		return
	}
	goleak.VerifyTestMain(
		m,
		// The stores' libraries start clocks and cache cleaners when they are
		// loaded, and this one with the first summary metric.
		goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("github.com/VictoriaMetrics/metrics.summariesSwapCron"),
	)
}
