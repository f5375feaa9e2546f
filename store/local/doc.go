// Package local keeps telemetry in stores that are part of the process:
// records in VictoriaLogs' storage library, samples in Prometheus' time-series
// database. Both pass package storetest.
//
// VictoriaLogs' library ends the process on an I/O error in its background
// work. The stores therefore refuse data while the disk still has room
// ([store.ErrUnavailable]), and what they had not synced is applied again from
// the journal at the next start.
package local
