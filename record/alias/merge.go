package alias

import "slices"

// merge puts a user's file on top of the embedded one. An entry with a new name
// is added; one with a known name changes what it mentions, and its sources go
// before those that were there.
func merge(base, user *file) (*file, error) {
	out := &file{Version: base.Version}
	out.Dialects = slices.Clone(base.Dialects)
	for _, d := range user.Dialects {
		k := slices.IndexFunc(out.Dialects, func(o dialect) bool { return o.Name == d.Name })
		if k < 0 {
			out.Dialects = append(out.Dialects, d)
			continue
		}
		out.Dialects[k] = out.Dialects[k].with(d)
	}
	out.Attributes = slices.Clone(base.Attributes)
	for _, a := range user.Attributes {
		k := slices.IndexFunc(out.Attributes, func(o *attribute) bool { return o.Name == a.Name })
		if k < 0 {
			out.Attributes = append(out.Attributes, a)
			continue
		}
		merged, err := out.Attributes[k].with(a)
		if err != nil {
			return nil, err
		}
		out.Attributes[k] = merged
	}
	out.Metrics = slices.Clone(base.Metrics)
	for _, m := range user.Metrics {
		k := slices.IndexFunc(out.Metrics, func(o *metric) bool { return o.Name == m.Name })
		if k < 0 {
			out.Metrics = append(out.Metrics, m)
			continue
		}
		merged, err := out.Metrics[k].with(m)
		if err != nil {
			return nil, err
		}
		out.Metrics[k] = merged
	}
	return out, nil
}

func (d dialect) with(u dialect) dialect {
	d.at = u.at
	if u.Description != "" {
		d.Description = u.Description
	}
	labels := map[string]string{}
	for k, v := range d.Labels {
		labels[k] = v
	}
	for k, v := range u.Labels {
		labels[k] = v
	}
	d.Labels = labels
	d.Prefixes = append(slices.Clone(d.Prefixes), u.Prefixes...)
	return d
}

func (a *attribute) with(u *attribute) (*attribute, error) {
	out := *a
	out.at = u.at
	out.Type = override(a.Type, u.Type)
	out.Unit = override(a.Unit, u.Unit)
	out.Description = override(a.Description, u.Description)
	out.Limit = override(a.Limit, u.Limit)
	out.Never = append(slices.Clone(a.Never), u.Never...)
	out.Off = u.Off
	from, err := without(a.From, u.Without, u.at, func(s *source) string { return s.Name })
	out.From = append(slices.Clone(u.From), from...)
	return &out, err
}

func (m *metric) with(u *metric) (*metric, error) {
	out := *m
	out.at = u.at
	out.Type = override(m.Type, u.Type)
	out.Unit = override(m.Unit, u.Unit)
	out.Description = override(m.Description, u.Description)
	out.Off = u.Off
	from, err := without(m.From, u.Without, u.at, func(s *metricSource) string { return s.Name })
	out.From = append(slices.Clone(u.From), from...)
	return &out, err
}

func override[T comparable](old, set T) T {
	var zero T
	if set != zero {
		return set
	}
	return old
}

// without leaves out the sources with the given names; one that is not there is
// an error, since it would be a misspelt one.
func without[S any](from []S, names []string, at position, name func(S) string) ([]S, error) {
	kept := slices.Clone(from)
	for _, n := range names {
		before := len(kept)
		kept = slices.DeleteFunc(kept, func(s S) bool { return name(s) == n })
		if len(kept) == before {
			return nil, at.errorf("without names %q, which is none of the sources", n)
		}
	}
	return kept, nil
}
