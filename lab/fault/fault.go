// Package fault breaks the simulated system: each fault changes what a mechanism
// is like, in several variants, and names the cause that an inquest has to find.
// Symptoms are not painted: they follow, on victims too.
package fault

import (
	"slices"
	"strings"

	"inquest/lab/system"
	"inquest/record"
)

// Fault is a fault of the catalogue as the laboratory makes it.
type Fault struct {
	ID       string
	Variants []Variant
}

// Variant is one way in which a fault happens.
type Variant struct {
	Name string
	// Prepare changes the system before its time begins, Apply when the fault
	// begins. Either may be nil.
	Prepare, Apply func(*system.System)
	// At are the things at fault, such as "service:vllm model:llama"; a service
	// stands for its pods too.
	At string
	// Also are other identifiers of the catalogue that are right.
	Also []string
}

// Truth is what an inquest should name.
type Truth struct {
	// Faults are identifiers of the catalogue, any of which is right; Entities the
	// things at fault, any of which is right.
	Faults   []string
	Entities []record.Entity
}

// Names reports whether a cause is the right one.
func (t Truth) Names(fault string, at record.Entity) bool {
	return slices.Contains(t.Faults, fault) && t.At(at)
}

// At reports whether an entity is the right one.
func (t Truth) At(at record.Entity) bool {
	return slices.ContainsFunc(t.Entities, func(e record.Entity) bool {
		return e.Kind == at.Kind && e.Name == at.Name
	})
}

// entities reads a list such as "service:vllm pod:vllm node:gpu-1"; of a pod the
// name of its service is given and all its pods are meant, of a service the
// dependency of that name too.
func entities(s *system.System, list string) []record.Entity {
	var out []record.Entity
	add := func(k record.EntityKind, name string) { out = append(out, record.Entity{Kind: k, Name: name}) }
	for _, f := range strings.Fields(list) {
		kind, name, _ := strings.Cut(f, ":")
		switch record.EntityKind(kind) {
		case record.EntityService:
			add(record.EntityService, name)
			add(record.EntityDependency, name)
			if v := s.Services[name]; v != nil {
				for _, p := range v.Pods {
					add(record.EntityPod, p.Name)
				}
			}
		default:
			add(record.EntityKind(kind), name)
		}
	}
	return out
}

// Resolve fills in the truth of a variant for a system.
func (v *Variant) Resolve(s *system.System, fault string) Truth {
	return Truth{Faults: append([]string{fault}, v.Also...), Entities: entities(s, v.At)}
}
