package admit

import (
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit/event"
	"inquest/record"
)

// Logs removes from ld the log records that cannot be stored, and scopes and
// resources without any. It returns how many are left. received is when the
// batch arrived, in ns. Reasons go to rep, which may be nil. The other records
// stay as they are, in their order.
func Logs(ld plog.Logs, b Bounds, received int64, rep *Report) (kept int) {
	var a admission
	return a.logs(ld, b, received, rep)
}

func (a *admission) logs(ld plog.Logs, b Bounds, received int64, rep *Report) (kept int) {
	a.begin("log record", b, received, rep)
	ld.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool {
		var res extent
		res.attributes(rl.Resource().Attributes())
		rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
			sh := sharedOf(res, rl.Resource(), sl.Scope())
			refused := refusedLogs{a: a, sh: &sh}
			defer refused.end()
			if sh.unfit() {
				a.refuseAll(&sh, sl.LogRecords().Len())
				for _, lr := range sl.LogRecords().All() {
					refused.add(lr)
				}
				return true
			}
			sl.LogRecords().RemoveIf(func(lr plog.LogRecord) bool {
				if a.log(lr, &sh) {
					return false
				}
				refused.add(lr)
				return true
			})
			kept += sl.LogRecords().Len()
			return sl.LogRecords().Len() == 0
		})
		return rl.ScopeLogs().Len() == 0
	})
	a.end()
	return kept
}

func (a *admission) log(lr plog.LogRecord, sh *shared) bool {
	a.kind = LetterLog
	if a.policy == nil || a.policy.Events == nil || !event.Recognise(lr) {
		return a.storable(lr, sh)
	}
	if !a.event(lr, sh) {
		return false
	}
	if a.storable(lr, sh) {
		return true
	}
	a.giveBack(lr)
	return false
}

// storable tells whether a log record can be stored.
func (a *admission) storable(lr plog.LogRecord, sh *shared) bool {
	if !a.inTime(record.LogTime(lr, a.received)) {
		return false
	}
	var own extent
	own.attributes(lr.Attributes())
	own.value(lr.Body(), 0)
	own.text(lr.SeverityText())
	own.text(lr.EventName())
	if !a.fits(&own, sh, func(whole bool) int { return logSize(lr, sh, whole) }) {
		return false
	}
	if n := own.count + sh.count; n > record.MaxAttributes {
		a.manyAttributes(n)
	}
	return true
}
