package event

// role tells the members apart that the package itself reads.
type role uint8

const (
	noRole role = iota
	roleTimestamp
	roleLevel
	roleService
	roleRequestID
	roleTraceID
	roleSpanID
	roleEvent
	roleMessage
	roleUserID
	roleInputHash
	roleInput
	numRoles
)

// rolePaths are the paths of the members. The first has no path that is taken.
var rolePaths = [numRoles]string{
	noRole:        "",
	roleTimestamp: "timestamp",
	roleLevel:     "level",
	roleService:   "service",
	roleRequestID: "req_id",
	roleTraceID:   "trace_id",
	roleSpanID:    "span_id",
	roleEvent:     "event",
	roleMessage:   "message",
	roleUserID:    "business.user_id",
	roleInputHash: "business.input_hash",
	roleInput:     "business.input",
}

// onRecord tells the roles that the log record itself holds in the stored form.
func (r role) onRecord() bool {
	switch r {
	case roleTimestamp, roleLevel, roleTraceID, roleSpanID, roleEvent, roleMessage:
		return true
	}
	return false
}

// facts are the members that the package itself reads.
type facts struct {
	given  [numRoles]bool // by the event
	filled [numRoles]bool // by the log record
	value  [numRoles]string
	time   int64 // of a timestamp that the event gave, ns
}

func (f *facts) give(r role, value string) {
	f.given[r], f.value[r] = true, value
}

func (f *facts) fill(r role, value string) {
	f.filled[r], f.value[r] = true, value
}
