package api

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(
		m,
		// The stores' libraries start clocks and cleaners when they are loaded…
		goleak.IgnoreCurrent(),
		// …and this one with the first summary metric.
		goleak.IgnoreAnyFunction("github.com/VictoriaMetrics/metrics.summariesSwapCron"),
	)
}
