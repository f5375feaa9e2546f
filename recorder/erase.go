package recorder

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"inquest/admit"
	"inquest/admit/event"
	"inquest/record"
	"inquest/store"
	"inquest/store/payload"
)

// Erased is what the erasure of a user removed, and what it did not.
type Erased struct {
	Payloads payload.Erased
	// Letters is how many dead letters went, with all their parts.
	Letters int
	// Remains are the places that still hold something of the user.
	Remains []Remains
}

// Remains is something that an erasure does not remove.
type Remains struct {
	What   string // records, dead_letters, journal, set_aside
	Count  int
	Until  time.Time // when it goes by itself at the latest; zero where it does not
	Detail string    // for a person
}

// rowDeleter is offered by record stores that can remove rows before their
// retention ends.
type rowDeleter interface {
	// Delete removes the rows of a filter, and returns when they are gone from
	// the disk.
	Delete(ctx context.Context, filter string) error
}

// roller is offered by journals of whole segments.
type roller interface {
	// Roll lets the next Truncate remove what the journal holds now.
	Roll() error
}

// EraseUser removes the raw inputs of a user, wherever they are kept: payloads,
// and dead letters, which hold what came as it came. The journal lets go of the
// entries that brought these letters. It may be repeated, and must be after an
// error.
func (r *Recorder) EraseUser(ctx context.Context, userID string) (Erased, error) {
	var out Erased
	if userID == "" {
		return out, errors.New("cannot erase a user without an id")
	}
	// Nobody re-drives a letter meanwhile.
	r.letters.Lock()
	defer r.letters.Unlock()
	if p := r.opts.Payloads; p != nil {
		var err error
		// First, since from then on nothing brings the payloads again.
		if out.Payloads, err = p.Store.EraseUser(ctx, userID); err != nil {
			return out, fmt.Errorf("cannot erase payloads: %w", err)
		}
	}
	head := r.queue.head()
	if err := r.CatchUp(ctx); err != nil {
		return out, fmt.Errorf("cannot erase dead letters: %w", err)
	}
	ids, err := r.lettersOfUser(ctx, userID)
	if err != nil {
		return out, fmt.Errorf("cannot find the user's dead letters: %w", err)
	}
	if len(ids) > 0 {
		if err := r.eraseLetters(ctx, ids, head, &out); err != nil {
			return out, fmt.Errorf("cannot erase dead letters: %w", err)
		}
	}
	if err := r.remainingRecords(ctx, userID, &out); err != nil {
		return out, fmt.Errorf("cannot count what remains: %w", err)
	}
	r.remainingFiles(&out)
	return out, nil
}

// lettersOfUser returns the ids of the letters that name the user: open ones,
// and those that are done, since they hold what came too.
func (r *Recorder) lettersOfUser(ctx context.Context, userID string) ([]string, error) {
	filter := admit.NewUserFilter(userID)
	var ids []string
	large := map[string]int{} // letters in parts
	q := fmt.Sprintf(`{%q=%q} %q:* | fields %q, %q, %q, %q`, record.FieldType, string(record.TypeDeadLetter), record.FieldLetterID,
		record.FieldLetterID, record.FieldLetterEncoding, record.FieldLetterPayload, record.FieldLetterParts)
	err := r.opts.Records.QueryRecords(ctx, store.RecordQuery{LogsQL: q}, func(fields []record.Field) error {
		l, parts := readLetter(fields)
		switch {
		case filter.Match(&l.Letter):
			ids = append(ids, l.id)
		case parts > 1:
			large[l.id] = parts
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id, parts := range large {
		l, err := r.wholeLetter(ctx, id, parts)
		if err != nil {
			return nil, err
		}
		if filter.Match(l) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// wholeLetter reads a letter with its parts, as many of them as are left.
func (r *Recorder) wholeLetter(ctx context.Context, id string, parts int) (*admit.Letter, error) {
	texts := make([]string, max(parts, 1))
	var l admit.Letter
	q := fmt.Sprintf(`{%q in (%q, %q)} %q:=%q`, record.FieldType, string(record.TypeDeadLetter), string(record.TypeDeadLetterPart), record.FieldLetterID, id)
	err := r.opts.Records.QueryRecords(ctx, store.RecordQuery{LogsQL: q}, func(fields []record.Field) error {
		n, text := 0, ""
		for _, f := range fields {
			switch f.Name {
			case record.FieldLetterPart:
				n, _ = strconv.Atoi(f.Value) // written by us
			case record.FieldLetterPayload:
				text = strings.Clone(f.Value)
			case record.FieldLetterEncoding:
				l.Encoding = admit.Encoding(strings.Clone(f.Value))
			}
		}
		if n >= 0 && n < len(texts) {
			texts[n] = text
		}
		return nil
	})
	l.Payload = strings.Join(texts, "")
	return &l, err
}

// eraseIDs is how many letters one deletion names.
const eraseIDs = 1000

func (r *Recorder) eraseLetters(ctx context.Context, ids []string, head uint64, out *Erased) error {
	d, ok := r.opts.Records.(rowDeleter)
	if !ok {
		out.Remains = append(out.Remains, Remains{
			What: "dead_letters", Count: len(ids), Until: r.expiry(time.Now()),
			Detail: "the store of records cannot remove single rows; they go with their retention",
		})
		return nil
	}
	// The entries that brought the letters must not be applied again, or a crash
	// would bring them back; and the journal must not hold them any longer.
	if roll, ok := r.opts.Journal.(roller); ok {
		if err := roll.Roll(); err != nil {
			return err
		}
	}
	if err := r.apply.sync(ctx, head); err != nil {
		return err
	}
	if err := r.opts.Journal.Truncate(r.apply.synced.get() + 1); err != nil {
		return err
	}
	for part := range slices.Chunk(ids, eraseIDs) {
		quoted := make([]string, len(part))
		for i, id := range part {
			quoted[i] = strconv.Quote(id)
		}
		err := d.Delete(ctx, fmt.Sprintf(`{%q in (%q, %q)} %q:in(%s)`, record.FieldType,
			string(record.TypeDeadLetter), string(record.TypeDeadLetterPart), record.FieldLetterID, strings.Join(quoted, ",")))
		if err != nil {
			return err
		}
		out.Letters += len(part)
	}
	if first := r.opts.Journal.Stats().First; first <= lastEntry(ids) {
		out.Remains = append(out.Remains, Remains{
			What: "journal", Count: int(lastEntry(ids) - first + 1), Until: time.Now().Add(2 * r.opts.SyncInterval).UTC(),
			Detail: "entries of the journal that may have brought the letters go when a checkpoint after them was written",
		})
	}
	return nil
}

// lastEntry is the last journal entry that brought one of the letters.
func lastEntry(ids []string) uint64 {
	var last uint64
	for _, id := range ids {
		text, _, _ := strings.Cut(id, "-")
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			last = max(last, n)
		}
	}
	return last
}

// expiry is when a record of that time goes past the retention.
func (r *Recorder) expiry(at time.Time) time.Time {
	earliest, _ := r.opts.Records.Bounds()
	return at.Add(time.Since(earliest)).UTC()
}

// remainingRecords tells of the records that name the user. They hold the hash
// of an input and not the input.
func (r *Recorder) remainingRecords(ctx context.Context, userID string, out *Erased) error {
	var newest time.Time
	n := 0
	q := fmt.Sprintf(`{%q in (%q, %q)} (%q:=%q or %q:=%q or %q:=%q) | stats count() n, max(_time) newest`,
		record.FieldType, string(record.TypeLog), string(record.TypeSpan),
		event.Prefix+"business.user_id", userID, "user.id", userID, "enduser.id", userID)
	err := r.opts.Records.QueryRecords(ctx, store.RecordQuery{LogsQL: q}, func(fields []record.Field) error {
		for _, f := range fields {
			switch f.Name {
			case "n":
				n, _ = strconv.Atoi(f.Value) // a count
			case "newest":
				newest, _ = time.Parse(time.RFC3339Nano, f.Value) // none without records
			}
		}
		return nil
	})
	if err != nil || n == 0 {
		return err
	}
	out.Remains = append(out.Remains, Remains{
		What: "records", Count: n, Until: r.expiry(newest),
		Detail: "log records and spans with the user's id; of a raw input they hold hash and size",
	})
	return nil
}

// remainingFiles tells of entries that could not be applied and lie in files:
// nothing here can say whose they are.
func (r *Recorder) remainingFiles(out *Erased) {
	names, err := r.opts.FS.List(r.opts.Dir)
	// The journal keeps its own beside its segments; another kind of journal may
	// have no such folder.
	damaged, _ := r.opts.FS.List(filepath.Join(r.opts.Dir, journalDir))
	n := 0
	for _, name := range slices.Concat(names, damaged) {
		if strings.HasPrefix(name, setAsidePrefix) || strings.Contains(name, ".damaged-") || strings.Contains(name, ".cut-") {
			n++
		}
	}
	if err == nil && n == 0 {
		return
	}
	detail := fmt.Sprintf("files of what could not be applied or was damaged (%s, %s, %s); they may hold anybody's: examine them and remove them by hand",
		filepath.Join(r.opts.Dir, setAsidePrefix+"*"), filepath.Join(r.opts.Dir, journalDir, "*.damaged-*"), filepath.Join(r.opts.Dir, journalDir, "*.cut-*"))
	if err != nil {
		detail = "cannot look for files set aside: " + err.Error()
	}
	out.Remains = append(out.Remains, Remains{What: "set_aside", Count: n, Detail: detail})
}
