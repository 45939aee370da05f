// A receiver of client metrics (KIP-714) for a broker: writes every push to a file, one line per data point, as Apache's own
// OpenTelemetry classes read it. A push that they cannot read is refused with INVALID_RECORD.
//
// metric.reporters=TelemetryReceiver      telemetry.receiver.file=/some/file
//
// push TAB client instance id TAB client id TAB terminating TAB bytes TAB resource attributes
// point TAB name TAB gauge|delta|cumulative TAB value TAB attributes TAB nanoseconds from start to time

import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.common.metrics.*;
import org.apache.kafka.server.telemetry.*;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.KeyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.*;

public class TelemetryReceiver implements MetricsReporter, ClientTelemetryExporterProvider {
    private Path file;

    @Override public void configure(Map<String, ?> configs) {
        file = Path.of(String.valueOf(configs.get("telemetry.receiver.file")));
    }

    @Override public void init(List<KafkaMetric> metrics) { }
    @Override public void metricChange(KafkaMetric metric) { }
    @Override public void metricRemoval(KafkaMetric metric) { }
    @Override public void close() { }

    @Override public ClientTelemetryExporter clientTelemetryExporter() {
        return this::export;
    }

    private synchronized void export(ClientTelemetryContext context, ClientTelemetryPayload payload) {
        try {
            int bytes = payload.data().remaining();
            MetricsData data = MetricsData.parseFrom(payload.data());
            StringBuilder text = new StringBuilder();
            String resource = data.getResourceMetricsList().stream()
                    .map(each -> shown(each.getResource().getAttributesList())).collect(Collectors.joining(","));
            line(text, "push", payload.clientInstanceId(), context.authorizableRequestContext().clientId(), payload.isTerminating(), bytes, resource);
            for (ResourceMetrics each : data.getResourceMetricsList())
                for (ScopeMetrics scope : each.getScopeMetricsList())
                    for (Metric metric : scope.getMetricsList())
                        points(text, metric);
            Files.write(file, text.toString().getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    private static void points(StringBuilder text, Metric metric) {
        boolean isSum = metric.hasSum();
        if (!isSum && !metric.hasGauge()) throw new IllegalArgumentException(metric.getName() + " is no sum and no gauge");
        if (isSum && !metric.getSum().getIsMonotonic()) throw new IllegalArgumentException(metric.getName() + " is not monotonic");
        String kind = !isSum ? "gauge" : switch (metric.getSum().getAggregationTemporality()) {
            case AGGREGATION_TEMPORALITY_DELTA -> "delta";
            case AGGREGATION_TEMPORALITY_CUMULATIVE -> "cumulative";
            default -> "unknown";
        };
        for (NumberDataPoint point : isSum ? metric.getSum().getDataPointsList() : metric.getGauge().getDataPointsList()) {
            Object value = point.hasAsInt() ? (Object) point.getAsInt() : (Object) point.getAsDouble();
            long elapsed = isSum ? point.getTimeUnixNano() - point.getStartTimeUnixNano() : 0;
            line(text, "point", metric.getName(), kind, value, shown(point.getAttributesList()), elapsed);
        }
    }

    private static String shown(List<KeyValue> attributes) {
        return attributes.stream().map(each -> each.getKey() + "=" + each.getValue().getStringValue()).collect(Collectors.joining(","));
    }

    private static void line(StringBuilder text, Object... fields) {
        text.append(Arrays.stream(fields).map(String::valueOf).collect(Collectors.joining("\t"))).append("\n");
    }
}
