package recorder

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/record"
)

// appendCanonical adds to the samples what md's metrics are called canonically.
// A canonical point that cannot be stored is no dead letter: what was sent is
// stored, and the number of rows of an entry must not depend on the table.
func (a *applier) appendCanonical(ctx context.Context, md pmetric.Metrics) error {
	canonical, any := a.r.opts.Aliases.Canonical(md)
	if !any {
		return nil
	}
	for _, rm := range canonical.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() == record.ScopeScraped {
				sm.Scope().SetName("") // canonical names get their suffixes
			}
		}
	}
	rejected, err := a.samples.AppendMetrics(ctx, canonical)
	for _, rej := range rejected {
		a.log.Debug("cannot store canonical points; what was sent is stored", "points", rej.Points, "reason", rej.Reason)
	}
	return err
}
