// Prints Apache Kafka's features, one per line:
//   version LEVEL NAME CHANGES-METADATA REGISTER-BROKER PARTITION PARTITION-CHANGE FEATURE=DEFAULT...
//   feature NAME MIN MAX
//   level NAME LEVEL DEPENDENCY=LEVEL...

import org.apache.kafka.server.common.*;

public class FeatureOracle {
    public static void main(String[] args) {
        for (MetadataVersion version : MetadataVersion.values()) {
            if (!version.isProduction()) continue;
            StringBuilder line = new StringBuilder("version " + version.featureLevel() + " " + version.version() + " "
                + version.didMetadataChange() + " " + version.registerBrokerRecordVersion() + " "
                + version.partitionRecordVersion() + " " + version.partitionChangeRecordVersion());
            for (Feature feature : Feature.PRODUCTION_FEATURES) {
                line.append(" " + feature.featureName() + "=" + feature.defaultLevel(version));
            }
            System.out.println(line);
        }
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            System.out.println("feature " + feature.featureName() + " " + feature.minimumProduction() + " " + feature.latestProduction());
            for (FeatureVersion level : feature.featureVersions()) {
                StringBuilder line = new StringBuilder("level " + feature.featureName() + " " + level.featureLevel());
                level.dependencies().forEach((name, needed) -> line.append(" " + name + "=" + needed));
                System.out.println(line);
            }
        }
    }
}
