package logs

import (
	"regexp"

	"inquest/record"
	"inquest/sensor"
)

// Attributes of Kubernetes events, as the Collector's receivers write them.
const (
	attributeReason     = "k8s.event.reason"
	attributeObjectKind = "k8s.object.kind"
	attributeObjectName = "k8s.object.name"
)

// hashes end the names of what a deployment makes: of a replica set, of a pod.
var hashes = regexp.MustCompile(`(-[bcdf-hj-np-tv-z2-9]{8,10})(-[bcdf-hj-np-tv-z2-9]{5})?$`)

// source is what sends log records; it is comparable.
type source struct{ service, pod, node string }

func sourceOf(l *sensor.Log) source { return source{l.Service, l.Pod, l.Node} }

// entity is what writes a log: the service, else the pod, else the machine.
func (s source) entity() record.Entity {
	switch {
	case s.service != "":
		return sensor.Service(s.service)
	case s.pod != "":
		return sensor.Pod(s.pod)
	case s.node != "":
		return sensor.NodeEntity(s.node)
	}
	return record.Entity{}
}

// object returns what a Kubernetes event is about, whoever forwarded it.
func object(attrs map[string]string) (record.Entity, bool) {
	name := attrs[attributeObjectName]
	if name == "" {
		return record.Entity{}, false
	}
	switch attrs[attributeObjectKind] {
	case "Pod":
		return sensor.Pod(name), true
	case "Node":
		return sensor.NodeEntity(name), true
	case "ReplicaSet":
		return sensor.Service(hashes.ReplaceAllString(name, "")), true
	case "Deployment", "StatefulSet", "DaemonSet", "Service", "Rollout", "HorizontalPodAutoscaler", "InferenceService", "RayCluster", "RayService":
		return sensor.Service(name), true
	}
	return record.Entity{}, false
}

// subject returns what a record is about, by what its text told.
func subject(l *sensor.Log, kernel bool, own record.Entity) record.Entity {
	if e, ok := object(l.Attributes); ok {
		return e
	}
	if kernel && l.Node != "" {
		return sensor.NodeEntity(l.Node)
	}
	return own
}
