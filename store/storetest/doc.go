// Package storetest checks that a store keeps the promises of package store.
// Each implementation runs it:
//
//	func TestRecords(t *testing.T) {
//		storetest.Records(t, func(t testing.TB, dir string) store.Records { … })
//	}
//
// The function opens the store in dir, which may hold what an earlier call left.
// It should give the store a retention that reaches back before 1970 where it
// can, so that old incidents are tried too, and need not close it.
package storetest
