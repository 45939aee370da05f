"""Server processes (Apache Kafka, Ottla), their tools and programs, and the keeper that ends them."""
