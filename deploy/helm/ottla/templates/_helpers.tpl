{{- define "ottla.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* Short enough for the names of pods and services, which add up to 20 characters. */ -}}
{{- define "ottla.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "ottla.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "ottla.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ottla.selector" -}}
app.kubernetes.io/name: {{ include "ottla.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ottla.labels" -}}
{{ include "ottla.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "ottla.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "ottla.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* 22 characters, as a UUID in Kafka's form: the same at every upgrade, another for every release. */ -}}
{{- define "ottla.clusterId" -}}
{{- if .Values.clusterId -}}
{{- .Values.clusterId -}}
{{- else -}}
{{- printf "%s/%s" .Release.Namespace .Release.Name | sha256sum | trunc 16 | b64enc | trimSuffix "==" -}}
{{- end -}}
{{- end -}}

{{- define "ottla.controllers" -}}
{{- if gt (int .Values.controllers) (int .Values.replicas) -}}
{{- fail (printf "controllers is %v and replicas %v: the first %v nodes are controllers, so there must be as many. For a small cluster set both: controllers can never be added" .Values.controllers .Values.replicas .Values.controllers) -}}
{{- end -}}
{{- .Values.controllers -}}
{{- end -}}

{{- define "ottla.voters" -}}
{{- $voters := list -}}
{{- range until (int (include "ottla.controllers" .)) -}}
{{- $host := printf "%s-%d.%s-nodes.%s.svc" (include "ottla.fullname" $) . (include "ottla.fullname" $) $.Release.Namespace -}}
{{- $voters = append $voters (printf "%d@%s:%v" . $host $.Values.listeners.controller.port) -}}
{{- end -}}
{{- join "," $voters -}}
{{- end -}}

{{- /* log.retention.hours → KAFKA_LOG_RETENTION_HOURS */ -}}
{{- define "ottla.variable" -}}
KAFKA_{{ . | replace "_" "\x00" | replace "-" "___" | replace "\x00" "__" | replace "." "_" | upper }}
{{- end -}}

{{- /* What a cluster of this size should have, unless `settings` say otherwise. */ -}}
{{- define "ottla.settings" -}}
{{- $copies := min 3 (int .Values.replicas) -}}
{{- $settings := dict
  "default.replication.factor" $copies
  "min.insync.replicas" (max 1 (sub $copies 1))
  "offsets.topic.replication.factor" $copies
  "transaction.state.log.replication.factor" $copies
  "transaction.state.log.min.isr" (max 1 (sub $copies 1))
-}}
{{- range $name, $value := mergeOverwrite $settings .Values.settings }}
- name: {{ include "ottla.variable" $name }}
  value: {{ if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ printf "%.0f" $value | quote }}{{ else }}{{ $value | toString | quote }}{{ end }}
{{- end }}
{{- end -}}

{{- /* HOST:PORT by which clients outside reach a node; `ordinal` and the port are numbers, or what the shell makes of them. */ -}}
{{- define "ottla.externalHost" -}}
{{- $external := .root.Values.external -}}
{{- $host := tpl $external.host (dict "ordinal" .ordinal "Template" .root.Template) -}}
{{- if eq $external.type "NodePort" -}}
{{- printf "%s:%v" (default "$MACHINE_IP" $host) .nodePort -}}
{{- else -}}
{{- printf "%s:%d" (required "external.host: a LoadBalancer needs a name for each node, such as kafka-{{ .ordinal }}.example.com" $host) (int $external.port) -}}
{{- end -}}
{{- end -}}
