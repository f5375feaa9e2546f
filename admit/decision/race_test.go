//go:build race

package decision

// The race detector makes pools forget at random, so that counts of allocations
// say nothing.
func init() { raceDetector = true }
