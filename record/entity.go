package record

import (
	"fmt"
	"strings"
)

// EntityKind says what sort of thing an entity is.
type EntityKind string

// The kinds of entities.
const (
	EntityService      EntityKind = "service"
	EntityPod          EntityKind = "pod" // a pod, container or process: one running copy of a service
	EntityNode         EntityKind = "node"
	EntityGPU          EntityKind = "gpu"
	EntityModel        EntityKind = "model"
	EntityModelVersion EntityKind = "model_version"
	EntityAdapter      EntityKind = "adapter"
	// EntityDependency is something that is called and sends no telemetry of its
	// own: a database, a remote API.
	EntityDependency EntityKind = "dependency"
	// EntityOperation is one operation of a service, as its spans name it.
	EntityOperation EntityKind = "operation"
	// EntityCode is a place in a service's code, as its log statements name it.
	EntityCode EntityKind = "code"
)

// Entity is a thing that can be at fault. It is comparable and serves as a key.
type Entity struct {
	Kind EntityKind `json:"kind"`
	Name string     `json:"name"`
	// Of names the entity's owner where the name alone is ambiguous: the service
	// of an operation or a code region, the node of a GPU, the model of a version.
	Of string `json:"of,omitempty"`
}

// String returns kind:owner/name, or kind:name without an owner.
func (e Entity) String() string {
	if e.Of == "" {
		return string(e.Kind) + ":" + e.Name
	}
	return string(e.Kind) + ":" + e.Of + "/" + e.Name
}

// IsZero reports whether e names nothing.
func (e Entity) IsZero() bool { return e == Entity{} }

// Compare orders entities by kind, owner and name.
func (e Entity) Compare(o Entity) int {
	if c := strings.Compare(string(e.Kind), string(o.Kind)); c != 0 {
		return c
	}
	if c := strings.Compare(e.Of, o.Of); c != 0 {
		return c
	}
	return strings.Compare(e.Name, o.Name)
}

// ParseEntity reads what a person types: "kind:name", "kind:owner/name", or a
// bare name, which is a service.
func ParseEntity(s string) (Entity, error) {
	kind, rest, ok := strings.Cut(s, ":")
	if !ok {
		kind, rest = string(EntityService), s
	}
	switch k := EntityKind(kind); k {
	case EntityService, EntityPod, EntityNode, EntityDependency, EntityModel:
		if rest == "" {
			return Entity{}, fmt.Errorf("cannot read entity %q: it has no name", s)
		}
		return Entity{Kind: k, Name: rest}, nil
	case EntityGPU, EntityModelVersion, EntityAdapter, EntityOperation, EntityCode:
		owner, name, ok := strings.Cut(rest, "/")
		if !ok {
			owner, name = "", rest
		}
		if name == "" {
			return Entity{}, fmt.Errorf("cannot read entity %q: it has no name", s)
		}
		return Entity{Kind: k, Of: owner, Name: name}, nil
	default:
		return Entity{}, fmt.Errorf("cannot read entity %q: unknown kind %q", s, kind)
	}
}

// EdgeKind says how two entities are joined.
type EdgeKind string

// The kinds of edges.
const (
	EdgeCalls  EdgeKind = "calls"   // a service calls a service or dependency
	EdgeRunsOn EdgeKind = "runs_on" // a pod runs on a node, a model on a GPU
	EdgeServes EdgeKind = "serves"  // a pod serves a service, a service a model
)

// Edge joins two entities.
type Edge struct {
	Kind EdgeKind `json:"kind"`
	From Entity   `json:"from"`
	To   Entity   `json:"to"`
}

// Compare orders edges by kind, From and To.
func (e Edge) Compare(o Edge) int {
	if c := strings.Compare(string(e.Kind), string(o.Kind)); c != 0 {
		return c
	}
	if c := e.From.Compare(o.From); c != 0 {
		return c
	}
	return e.To.Compare(o.To)
}
