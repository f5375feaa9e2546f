package payloadtest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"inquest/store/payload"
)

func testErase(t *testing.T, s *suite) {
	own, shared := s.put("ann", "my address is …"), s.put("ann", "hello")
	s.put("bob", "hello")
	unknown := s.put("", "hi")
	s.put("ann", "hi")
	other := s.put("bob", "another's")
	e, err := s.EraseUser(s.ctx, "ann")
	s.must(err)
	if len(e.Removed) != 1 || e.Removed[0] != own || len(e.Shared) != 2 || len(e.Unreadable) != 0 ||
		e.References != 3 || e.Bytes != int64(len("my address is …")) {
		t.Fatalf("got %+v", e)
	}
	for range 2 {
		s.gone(own)
		for sum, content := range map[payload.Sum]string{shared: "hello", unknown: "hi", other: "another's"} {
			s.kept(sum, content)
			if info := s.stat(sum); len(info.Refs) != 1 || info.Refs[0].RequestID == "r-ann" {
				t.Fatalf("got %+v", info)
			}
		}
		s.usage(3, 5+2+9)
		e, err = s.EraseUser(s.ctx, "ann")
		s.must(err)
		if len(e.Removed)+len(e.Shared)+e.References != 0 {
			t.Fatalf("erased again: %+v", e)
		}
		s.reopen()
	}
	if _, err := s.EraseUser(s.ctx, ""); err == nil {
		t.Fatal("erased a user without an id")
	}
	e, err = s.EraseUser(s.ctx, "bob")
	s.must(err)
	if len(e.Removed) != 2 || e.References != 2 {
		t.Fatalf("got %+v", e)
	}
	s.gone(shared, other)
	s.kept(unknown, "hi")
}

// What a journal applies again stays erased; what the user does later is kept.
func testEraseStays(_ *testing.T, s *suite) {
	sum := s.put("ann", "secret")
	_, err := s.EraseUser(s.ctx, "ann")
	s.must(err)
	for range 2 {
		_, err = s.Put(s.ctx, sum, s.meta("ann"), []byte("secret"))
		s.want(err, payload.ErrErased)
		m := s.meta("ann")
		m.Time = s.now
		_, err = s.Put(s.ctx, sum, m, []byte("secret"))
		s.want(err, payload.ErrErased)
		s.gone(sum)
		s.reopen()
	}
	s.put("bob", "secret") // it is his
	s.now = s.now.Add(time.Hour)
	s.put("ann", "secret")
	s.kept(sum, "secret")
	s.reopen()
	if info := s.stat(sum); len(info.Refs) != 2 {
		s.t.Fatalf("got %+v", info)
	}
}

// An erasure that was noted and not done is done when the store is opened.
func testEraseInterrupted(t *testing.T, s *suite) {
	own, shared := s.put("ann", "own"), s.put("ann", "shared")
	s.put("bob", "shared")
	_, err := s.EraseUser(s.ctx, "ann")
	s.must(err)
	s.now = s.now.Add(time.Hour)
	s.put("ann", "own") // as if the erasure had been asked for only now
	s.put("ann", "shared")
	later := s.meta("ann")
	later.Time = s.now.Add(time.Hour)
	kept, err := s.Put(s.ctx, payload.Sum{}, later, []byte("later"))
	s.must(err)
	name := ""
	s.withBlobs(func(b payload.Blobs) {
		s.must(b.List(s.ctx, "erased", func(e payload.Entry) error {
			name = e.Name
			return nil
		}))
		data, err := json.Marshal(map[string]any{"at": s.now, "up_to": s.now, "done": false})
		s.must(err)
		s.must(b.Write(s.ctx, payload.Blob{Name: name, Data: data}))
	})
	s.gone(own)
	s.kept(kept, "later")
	if info := s.stat(shared); len(info.Refs) != 1 || info.Refs[0].RequestID != "r-bob" {
		t.Fatalf("got %+v", info)
	}
	// One that cannot be read covers all up to now.
	s.withBlobs(func(b payload.Blobs) {
		s.must(b.Write(s.ctx, payload.Blob{Name: name, Data: []byte("?")}))
		s.now = s.now.Add(2 * time.Hour)
	})
	s.gone(kept)
}

// A payload whose references are lost may be anybody's.
func testEraseUnreadable(t *testing.T, s *suite) {
	lost, other := s.put("ann", "whose?"), s.put("bob", "bob's")
	s.withBlobs(func(b payload.Blobs) {
		s.must(b.Write(s.ctx, payload.Blob{Name: refsName(lost), Data: []byte("inquest-refs 1 00000000\n{}\n")}))
	})
	s.kept(lost, "whose?")
	_, err := s.Stat(s.ctx, lost)
	s.want(err, payload.ErrDamaged)
	e, err := s.EraseUser(s.ctx, "ann")
	s.must(err)
	if len(e.Unreadable) != 1 || e.Unreadable[0] != lost || len(e.Removed) != 0 {
		t.Fatalf("got %+v", e)
	}
	s.gone(lost)
	s.kept(other, "bob's")
}

// A sender's clock that is ahead changes nothing.
func testEraseFuture(_ *testing.T, s *suite) {
	m := s.meta("ann")
	m.Time = s.now.Add(5 * time.Hour)
	sum, err := s.Put(s.ctx, payload.Sum{}, m, []byte("from the future"))
	s.must(err)
	_, err = s.EraseUser(s.ctx, "ann")
	s.must(err)
	s.gone(sum)
	_, err = s.Put(s.ctx, payload.Sum{}, m, []byte("from the future"))
	s.want(err, payload.ErrErased)
}

func testEraseForgotten(_ *testing.T, s *suite) {
	s.put("ann", "x")
	_, err := s.EraseUser(s.ctx, "ann")
	s.must(err)
	old := s.meta("ann")
	sweep := func(later time.Duration) {
		s.t.Helper()
		s.now = s.now.Add(later)
		_, err := s.Sweep(s.ctx)
		s.must(err)
	}
	sweep(payload.DefaultEraseMemory)
	_, err = s.Put(s.ctx, payload.Sum{}, old, []byte("x"))
	s.want(err, payload.ErrErased)
	sweep(time.Second)
	s.reopen()
	_, err = s.Put(s.ctx, payload.Sum{}, old, []byte("x"))
	s.must(err)
}

func testUserKey(t *testing.T, s *suite) {
	sum := s.put("ann.example", "x")
	key := s.stat(sum).Refs[0].User
	s.close()
	s.o.UserKey = []byte("another key of enough bytes")
	if _, err := payload.Open(s.ctx, s.openBlobs(t, s.place), s.o); err == nil || !strings.Contains(err.Error(), "another user key") {
		t.Fatalf("opened with another key: %v", err)
	}
	s.place += "2"
	s.open()
	m := s.meta("ann.example")
	m.RequestID = "r-1"
	_, err := s.Put(s.ctx, payload.Sum{}, m, []byte("x"))
	s.must(err)
	if own := s.stat(sum).Refs[0].User; own == key {
		t.Fatal("the key makes no difference")
	}
	s.close()
	given := s.o.UserKey
	s.o.UserKey = nil
	if _, err := payload.Open(s.ctx, s.openBlobs(t, s.place), s.o); err == nil || !strings.Contains(err.Error(), "missing now") {
		t.Fatalf("opened without the key: %v", err)
	}
	s.o.UserKey = []byte("short")
	if _, err := payload.Open(s.ctx, s.openBlobs(t, s.place), s.o); err == nil {
		t.Fatal("took a short key")
	}
	s.o.UserKey = given
	s.withBlobs(func(b payload.Blobs) {
		// Neither the user nor the key can be read from the place.
		for _, dir := range []string{"objects", "erased"} {
			s.must(b.List(s.ctx, dir, func(e payload.Entry) error {
				data, err := b.Read(s.ctx, e.Name, 1<<20)
				if err != nil || strings.Contains(string(data)+e.Name, "ann.example") {
					t.Errorf("%s holds %q, %v", e.Name, data, err)
				}
				return nil
			}))
		}
		data, err := b.Read(s.ctx, "format", 4096)
		if err != nil || strings.Contains(string(data), "user_key") {
			t.Errorf("format holds %q, %v", data, err)
		}
	})
}
